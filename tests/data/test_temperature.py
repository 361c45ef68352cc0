"""Temperatures, as prepared and as published."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from doxa.data import temperature
from doxa.data.formats.daily import DailyFormat
from doxa.data.sets.temperature import REANALYSIS, STATION
from doxa.errors import BadInput, BrokenFile

Real = Callable[[str], list[Path]]


def by_month(dates: np.ndarray, values: np.ndarray) -> np.ndarray:
    month = dates.astype("datetime64[M]").astype(int) % 12
    return np.array([values[month == number].mean() for number in range(12)])


@pytest.mark.parametrize(
    ("city", "warmest", "coldest"), [("brussels", (6, 20.9), (0, 4.2)), ("rio_de_janeiro", (1, 26.5), (6, 20.8))]
)
def test_real_noon_series_has_every_day_and_the_seasons(
    real: Real, city: str, warmest: tuple[int, float], coldest: tuple[int, float]
) -> None:
    real(f"temperature/{city}")
    read = temperature(city)
    assert (read.name, read.unit) == (f"temperature/{city}", "°C")
    assert read.dates.dtype == np.dtype("datetime64[D]")
    assert read.values.dtype == np.float64
    assert np.array_equal(read.dates, np.arange(np.datetime64("1979-01-01"), np.datetime64("2017-11-01")))
    means = by_month(read.dates, read.values)
    assert (means.argmax(), means.max()) == pytest.approx(warmest, abs=0.05)
    assert (means.argmin(), means.min()) == pytest.approx(coldest, abs=0.05)


def test_real_station_agrees_with_the_reanalysis(real: Real) -> None:
    real("temperature/uccle")
    real("temperature/brussels")
    station, noon = temperature("uccle"), temperature("brussels")
    assert len(station.values) == 2256
    assert (str(station.dates[0]), str(station.dates[-1])) == ("2013-08-15", "2020-06-11")
    assert (np.diff(station.dates).astype(int) - 1).sum() == 237
    _, mine, theirs = np.intersect1d(station.dates, noon.dates, return_indices=True)
    assert np.corrcoef(station.values[mine], noon.values[theirs])[0, 1] > 0.98
    assert 0 < (noon.values[theirs] - station.values[mine]).mean() < 4  # noon is warmer than the day


NOON = DailyFormat(REANALYSIS, "1979-01-01", "1979-01-03", 3)
MEAN = DailyFormat(STATION, "2013-08-15", "2013-08-18", 2)

# The beginnings of the files as published.
NOON_PUBLISHED = """\
,CityName,Latitude,Longitude,Date,Time,Parameter Name,Short Name,Distance to MetPoint,Latitude of MetPoint,Longitude of MetPoint,Value at MetPoint
6,Brussels,50.8503,4.3517,19790101,1200,2 metre temperature,2t,19.6087,51.0,4.5,263.88592529296875
28,Brussels,50.8503,4.3517,19790102,1200,2 metre temperature,2t,19.6087,51.0,4.5,269.0404815673828
50,Brussels,50.8503,4.3517,19790103,1200,2 metre temperature,2t,19.6087,51.0,4.5,268.45181274414057
"""  # noqa: E501
NOON_PREPARED = "date,temp_c\n1979-01-01,-9.264\n1979-01-02,-4.11\n1979-01-03,-4.698\n"
MEAN_PUBLISHED = """\
"STATION","NAME","LATITUDE","LONGITUDE","ELEVATION","DATE","PRCP","SNWD","TAVG","TMAX","TMIN"
"BE000006447","UCCLE, BE","50.8","4.35","104.0","2013-08-15","0.3",,"17.7","23.2","12.6"
"BE000006447","UCCLE, BE","50.8","4.35","104.0","2013-08-18","7.9",,"19.3","23.4",
"""
MEAN_PREPARED = "date,tavg_c,tmax_c,tmin_c\n2013-08-15,17.7,23.2,12.6\n2013-08-18,19.3,23.4,\n"


@pytest.mark.parametrize(
    ("daily", "published", "prepared"),
    [(NOON, NOON_PUBLISHED, NOON_PREPARED), (MEAN, MEAN_PUBLISHED, MEAN_PREPARED)],
)
def test_published_and_prepared_files_hold_the_same(
    tmp_path: Path, daily: DailyFormat, published: str, prepared: str
) -> None:
    (tmp_path / "published.csv").write_text(published)
    (tmp_path / "prepared.csv").write_text(prepared)
    dates, values = daily(tmp_path / "published.csv")
    same_dates, same_values = daily(tmp_path / "prepared.csv")
    assert np.array_equal(dates, same_dates)
    assert np.array_equal(values, same_values)
    assert str(dates[0]) == daily.first


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("1979-01-03,-4.698\n", "", "it has 2 days, expected 3"),
        ("temp_c", "wind", "its first line names no columns date and temp_c or Date and Value at MetPoint"),
        ("-4.11", "mild", "line 3 holds no day and temperature .*'mild'"),
        ("-4.11", "", "line 3 holds no day and temperature"),
        (",-4.11", "", "line 3 has 1 columns, expected 2"),
        ("-4.11", "-4.11,0", "line 3 has 3 columns, expected 2"),
        ("-4.11", "-4\0", "no CSV file|no day and temperature"),
        ("-4.11", "nan", "line 3 holds nan, expected a temperature"),
        ("-4.11", "269.04", r"line 3 holds 269\.04, expected a temperature"),
        ("1979-01-02", "1979-02-30", "line 3 holds no day and temperature"),
        ("1979-01-02", "1979-01-01", "its days run from 1979-01-01 to 1979-01-03, expected .*, in order"),
        ("1979-01-03", "1979-01-04", "to 1979-01-04, expected 1979-01-01 to 1979-01-03"),
    ],
)
def test_wrong_file_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "prepared.csv"
    path.write_text(NOON_PREPARED.replace(old, new))
    with pytest.raises(BrokenFile, match=message) as caught:
        NOON(path)
    assert str(caught.value).startswith(str(path))


def test_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(BrokenFile, match="names no columns"):
        NOON(tmp_path / "empty.csv")


def test_unknown_city_is_refused() -> None:
    with pytest.raises(BadInput, match=r"no city 'rio'; did you mean 'rio_de_janeiro'\?"):
        temperature("rio")


def test_missing_file_is_said(data_folder: Path) -> None:
    with pytest.raises(BadInput, match=r"brussels_uccle.*\.csv is missing.*doxa data get temperature/uccle"):
        temperature("uccle")
