"""The regression sets on which weight uncertainty is customarily compared: their columns, and where they come from."""

from __future__ import annotations

from dataclasses import dataclass

UCI = "CC BY 4.0"


@dataclass(frozen=True)
class RegressionSet:
    """The columns of a file, features first, then the target, then what the benchmark does not use."""

    description: str
    rows: int
    features: tuple[str, ...]
    target: str
    bytes: int
    sha256: str
    licence: str
    citation: str
    home: str
    unused: tuple[str, ...] = ()
    splits: int = 20
    note: str = ""


SETS = {
    "bostonHousing": RegressionSet(
        "Median value of homes in 1,000 $, by census tract of Boston.",
        506,
        ("CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS", "RAD", "TAX", "PTRATIO", "B", "LSTAT"),
        "MEDV",
        49_082,
        "baadf72995725d76efe787b664e1f083388c79ba21ef9a7990d87f774184735a",
        "none stated",
        "Harrison & Rubinfeld (1978), Hedonic prices and the demand for clean air",
        "http://lib.stat.cmu.edu/datasets/boston",
        note="The column B is built on race, for which scikit-learn gave the set up: use it for comparison alone.",
    ),
    "concrete": RegressionSet(
        "Strength of concrete in MPa, by its ingredients and age.",
        1030,
        (
            "cement",
            "blast_furnace_slag",
            "fly_ash",
            "water",
            "superplasticizer",
            "coarse_aggregate",
            "fine_aggregate",
            "age",
        ),
        "compressive_strength",
        57_858,
        "43d290fd2c2a399ad7e62c45cab5337ba94ece69ebdcf5875aa668cb886243de",
        UCI,
        "Yeh (1998), Modeling of strength of high-performance concrete, doi 10.24432/C5PK67",
        "https://archive.ics.uci.edu/dataset/165/concrete+compressive+strength",
    ),
    "kin8nm": RegressionSet(
        "Distance of a simulated robot arm's hand from a target, by eight joint angles.",
        8192,
        tuple(f"theta{joint}" for joint in range(1, 9)),
        "distance",
        1_187_840,
        "a694ce0c7a21390f2bd2a205c36f2482cd974637a207038696716e22f3bbe810",
        "none stated",
        "Rasmussen et al. (1996), The DELVE manual",
        "https://www.cs.toronto.edu/~delve/data/kin/desc.html",
    ),
    "naval-propulsion-plant": RegressionSet(
        "Decay of a frigate's gas turbine compressor, by sixteen readings, simulated.",
        11_934,
        (
            "lever_position",
            "ship_speed",
            "gas_turbine_shaft_torque",
            "gas_turbine_revolutions",
            "gas_generator_revolutions",
            "starboard_propeller_torque",
            "port_propeller_torque",
            "turbine_exit_temperature",
            "compressor_inlet_temperature",
            "compressor_outlet_temperature",
            "turbine_exit_pressure",
            "compressor_inlet_pressure",
            "compressor_outlet_pressure",
            "exhaust_gas_pressure",
            "turbine_injection_control",
            "fuel_flow",
        ),
        "compressor_decay",
        3_448_926,
        "de0ea69da1efaab8b9655ffed828547d10dd68c1fb8c6e0163e6a988def393a6",
        UCI,
        "Coraddu et al. (2014), Condition based maintenance of naval propulsion plants, doi 10.24432/C5K31K",
        "https://archive.ics.uci.edu/dataset/316/condition+based+maintenance+of+naval+propulsion+plants",
        unused=("turbine_decay",),
    ),
    "power-plant": RegressionSet(
        "Hourly electrical output of a combined cycle power plant in MW, by the weather.",
        9568,
        ("temperature", "exhaust_vacuum", "ambient_pressure", "relative_humidity"),
        "electrical_output",
        308_680,
        "daebd20c408dfc5c4979604f240e891be162c3a5d00d662380aa669044a1fb31",
        UCI,
        "Tüfekci & Kaya (2014), Combined cycle power plant, doi 10.24432/C5002N",
        "https://archive.ics.uci.edu/dataset/294/combined+cycle+power+plant",
    ),
    "protein-tertiary-structure": RegressionSet(
        "Distance in Å of a predicted protein structure from the true one, by nine properties.",
        45_730,
        tuple(f"F{number}" for number in range(1, 10)),
        "RMSD",
        3_528_658,
        "d35f332707e8a73f21e021039250a1e7b26e14f7dd826a0337ffa8e8e48b9727",
        UCI,
        "Rana (2013), Physicochemical properties of protein tertiary structure, doi 10.24432/C5QW3H",
        "https://archive.ics.uci.edu/dataset/265/physicochemical+properties+of+protein+tertiary+structure",
        splits=5,
    ),
    "wine-quality-red": RegressionSet(
        "Taste of red vinho verde on a scale of 0 to 10, by eleven measurements.",
        1599,
        (
            "fixed_acidity",
            "volatile_acidity",
            "citric_acid",
            "residual_sugar",
            "chlorides",
            "free_sulfur_dioxide",
            "total_sulfur_dioxide",
            "density",
            "pH",
            "sulphates",
            "alcohol",
        ),
        "quality",
        84_027,
        "3ba41eaf4ab562088cf47b5c9dca2b4de2a330c3ee38a7920b4527a09574d5c1",
        UCI,
        "Cortez et al. (2009), Modeling wine preferences by data mining, doi 10.24432/C56S3T",
        "https://archive.ics.uci.edu/dataset/186/wine+quality",
    ),
}
