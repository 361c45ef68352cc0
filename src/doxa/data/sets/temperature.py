"""Daily temperature of a city."""

from __future__ import annotations

from doxa.data.card import Card, File
from doxa.data.files import find_file
from doxa.data.formats.daily import ColumnNames, DailyFormat
from doxa.data.series import Series
from doxa.errors import BadInput, did_you_mean


def _from_kelvin(kelvin: float) -> float:
    return round(kelvin - 273.15, 3)


# As they are after all else has been left out, and as they are published.
REANALYSIS = (ColumnNames("date", "temp_c"), ColumnNames("Date", "Value at MetPoint", _from_kelvin))
STATION = (ColumnNames("date", "tavg_c"), ColumnNames("DATE", "TAVG"))

NOON = DailyFormat(REANALYSIS, "1979-01-01", "2017-10-31", 14_184)
UCCLE = DailyFormat(STATION, "2013-08-15", "2020-06-11", 2256)

ECMWF = "ECMWF terms for ERA-Interim (attribution)"
ERA_INTERIM = "Dee et al. (2011), The ERA-Interim reanalysis: 2 m temperature at the nearest grid point"
MIRROR = "https://raw.githubusercontent.com/n-kb/weathercontext"

# `also` is what is left of each file when all but the day and the °C (of the station: the extremes too) is left out.


def _card(city: str, description: str, daily: DailyFormat, licence: str, citation: str, home: str, file: File) -> Card:
    return Card(
        name=f"temperature/{city}",
        description=description,
        rows=daily.days,
        shape=(1,),
        task="time series",
        licence=licence,
        citation=citation,
        home=home,
        files=(file,),
    )


CARDS = {
    "brussels": _card(
        "brussels",
        "Temperature in Brussels at 12:00 UTC on every day of 1979 to October 2017.",
        NOON,
        ECMWF,
        ERA_INTERIM,
        "https://github.com/n-kb/weathercontext",
        File(
            path="temperature/brussels_era_interim_1200utc_daily.csv",
            url=f"{MIRROR}/793a8c96ac537ab7e4319ee15eda62bbd13fb366/data/brussels.csv",
            bytes=1_430_122,
            sha256="5fc17fee8b8e041a14e1f9f52edb02d8b28a950542894f697a48bf66b51c58f8",
            also=("f75ea43d5c56594c24ba06c4c27d9fc95a7216fd3f3cbcbd689c6692984232eb",),
        ),
    ),
    "rio_de_janeiro": _card(
        "rio_de_janeiro",
        "Temperature in Rio de Janeiro at 12:00 UTC on every day of 1979 to October 2017.",
        NOON,
        ECMWF,
        ERA_INTERIM,
        "https://github.com/n-kb/weathercontext",
        File(
            path="temperature/rio_de_janeiro_era_interim_1200utc_daily.csv",
            url=f"{MIRROR}/37a658e1e8275eb26dea681f246af703babdca1b/data/rio%20de%20janeiro.csv",
            bytes=1_597_588,
            sha256="5cd24e03bf8733e9464e1ae963e5869eb1d41671ce28a9f907a98af21b3b6128",
            also=("5b244a005bc5dc62232e29d89c5b1cc3a902bd437a5b3a8ede8da4f6260449f3",),
        ),
    ),
    "uccle": _card(
        "uccle",
        "Daily mean temperature at Uccle, in Brussels, August 2013 to June 2020, 237 days missing.",
        UCCLE,
        "open (NOAA)",
        "Menne et al. (2012), Global Historical Climatology Network - Daily: station BE000006447",
        "https://www.ncei.noaa.gov/products/land-based-station/global-historical-climatology-network-daily",
        File(
            path="temperature/brussels_uccle_ghcnd_daily_2013_2020.csv",
            url="https://raw.githubusercontent.com/vietdao204/weather-compare-viz/"
            "f9b9d536c818b90f414f17be44c63e3a70816fd4/data/brussels.csv",
            bytes=185_725,
            sha256="98e3c97c08b9b828596487cb8573a91cfe1f926137c7098b6ec80dc1d5d02345",
            also=("f0798f7a58c01132434931cf877035b39a1e7cf3e160948dc80dbff3a80612b5",),
        ),
    ),
}
DAILY = {"brussels": NOON, "rio_de_janeiro": NOON, "uccle": UCCLE}


def temperature(city: str) -> Series:
    """How warm was it? °C on 14,184 days at 12:00 UTC (brussels, rio_de_janeiro), or the mean of 2,256 days (uccle).

    Dee et al. (2011), The ERA-Interim reanalysis; Menne et al. (2012), An overview of the Global Historical Climatology
    Network - Daily database.
    """
    if city not in CARDS:
        raise BadInput(f"there is no city {city!r}{did_you_mean(str(city), CARDS, most=40)}")
    card = CARDS[city]
    dates, values = DAILY[city](find_file(card.files[0], card.name))
    return Series(card.name, dates, values, "°C")
