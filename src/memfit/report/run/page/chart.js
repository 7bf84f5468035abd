// Draws the figure of the page in the colours of the scheme in use, again whenever that changes.
"use strict";
(() => {
  const box = document.getElementById("chart");
  const toggle = document.getElementById("limit-toggle");
  const { data, layout } = JSON.parse(document.getElementById("chart-data").textContent);
  const config = {
    displaylogo: false,
    responsive: true,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
    // A recording stays here: plotly.js 4 offers by default to upload the chart.
    showSendToCloud: false,
    plotlyServerURL: "",
  };

  const colour = (role) =>
    getComputedStyle(document.documentElement).getPropertyValue(`--${role}`).trim();

  const paintAxis = (axis) => ({
    ...axis,
    gridcolor: colour("grid"),
    linecolor: colour("border"),
    zerolinecolor: colour("border"),
    spikecolor: colour("muted"),
    spikedash: "solid",
    spikethickness: 1,
    title: { ...axis.title, font: { size: 13 } },
  });

  const paintTrace = (trace) => ({
    ...trace,
    line: { ...trace.line, color: colour(trace.meta) },
    marker: { ...trace.marker, color: colour(trace.meta) },
  });

  const paintShape = (shape) => ({
    ...shape,
    fillcolor: colour(shape.name),
    line: { ...shape.line, color: colour(shape.name) },
  });

  const paintLabel = (label) => ({
    ...label,
    arrowcolor: colour(label.name),
    bgcolor: colour("label"),
    font: { color: colour(label.name) },
  });

  const paintLayout = () => {
    const axes = Object.keys(layout).filter((key) => /^[xy]axis/.test(key));
    return {
      ...layout,
      ...Object.fromEntries(axes.map((key) => [key, paintAxis(layout[key])])),
      shapes: layout.shapes.map(paintShape),
      annotations: layout.annotations.map(paintLabel),
      font: { family: getComputedStyle(document.body).fontFamily, color: colour("text"), size: 13 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      hoverlabel: { bgcolor: colour("surface"), bordercolor: colour("border"), namelength: -1 },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("muted"), activecolor: colour("text") },
      // On a touch screen a finger on the chart scrolls the page; a tap shows the values.
      dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
    };
  };

  const draw = () => Plotly.react(box, data.map(paintTrace), paintLayout(), config);

  const toggleLimit = () => {
    const parts = [...data.filter((trace) => trace.meta === "limit"),
      ...layout.annotations.filter((label) => label.name === "limit")];
    for (const part of parts) part.visible = !part.visible;
    const isShown = data.some((trace) => trace.meta === "limit" && trace.visible);
    toggle.setAttribute("aria-pressed", String(isShown));
    draw();
  };

  if (toggle) {
    toggle.hidden = false;
    toggle.addEventListener("click", toggleLimit);
  }
  for (const query of ["(prefers-color-scheme: dark)", "print"]) {
    matchMedia(query).addEventListener("change", draw);
  }
  draw();
})();
