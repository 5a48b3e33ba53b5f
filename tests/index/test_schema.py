from __future__ import annotations

from p2pdp.index.schema import metadata


def test_each_row_belongs_to_a_run_and_goes_with_it() -> None:
    for name, table in metadata.tables.items():
        if name not in ("p2pdp_schema", "p2pdp_runs"):
            (key,) = table.c.run_id.foreign_keys
            assert (key.target_fullname, key.ondelete) == ("p2pdp_runs.run_id", "CASCADE")


def test_there_is_no_column_for_values_routes_or_keys() -> None:
    columns = {column.name for table in metadata.tables.values() for column in table.columns}
    assert columns.isdisjoint({"value", "values", "step", "item", "peer", "salt", "secret", "box"})
