"""All cases, by family, in the order of the table."""

from exactness.features import feature_cases
from exactness.keras_layers import layer_cases
from exactness.keras_losses import loss_cases
from exactness.keras_metrics import metric_cases
from exactness.keras_optimizers import optimizer_cases

FAMILIES = {
    "features": feature_cases,
    "losses": loss_cases,
    "metrics": metric_cases,
    "optimizers": optimizer_cases,
    "layers": layer_cases,
}


def all_cases():
    return [case for make_cases in FAMILIES.values() for case in make_cases()]
