import keras
import numpy as np

SEED = 2024
N_SPLITS = 14


def kfold(n, k):
    order = np.random.default_rng(SEED).permutation(n)
    for fold in np.array_split(order, k):
        mask = np.ones(n, bool)
        mask[fold] = False
        yield np.flatnonzero(mask), fold


def make_model(n_features):
    model = keras.Sequential(
        [
            keras.Input((n_features,)),
            keras.layers.Dense(128, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.2),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.Dense(1),
        ]
    )
    model.compile(optimizer=keras.optimizers.AdamW(1e-3), loss="mse", metrics=["mae"])
    return model


X = np.random.default_rng(0).normal(size=(2000, 60)).astype("float32")
y = X[:, :5].sum(axis=1, keepdims=True)
oof = np.zeros((len(X), 1))

model = make_model(X.shape[1])
model.optimizer.build(model.trainable_variables)
start = [v.numpy() for v in model.variables + model.optimizer.variables]

for fold, (trn, val) in enumerate(kfold(len(X), N_SPLITS)):
    for variable, value in zip(model.variables + model.optimizer.variables, start, strict=True):
        variable.assign(value)
    model.fit(
        X[trn], y[trn], validation_data=(X[val], y[val]), epochs=16, batch_size=256, verbose=0
    )
    oof[val] = model.predict(X[val], verbose=0)
    print(f"fold {fold}: rmse {np.sqrt(np.mean((oof[val] - y[val]) ** 2)):.4f}")
print("CV", np.sqrt(np.mean((oof - y) ** 2)))
