"""The recount of a pool of blocks notices every kind of wrong book."""

from collections import OrderedDict

import pytest

from simcore.memory.block_pool import BlockPool


def pool_and_tables() -> tuple[BlockPool, list[list[int]]]:
    """Two requests that computed the same two blocks, a third without keys, and three blocks that are free again."""
    pool = BlockPool(12)
    first, second, third = pool.take(3), pool.take(3), pool.take(2)
    for table in (first, second):
        pool.publish(table, 0, [100, 101])
    gone = pool.take(3)
    pool.publish(gone, 0, [100, 200])
    pool.release(gone)
    return pool, [first, second, third]


def test_right_books_are_right():
    pool, tables = pool_and_tables()
    pool.check(tables)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda pool, tables: tables.pop(), "reference counts"),
        (lambda pool, tables: pool._pinned.add(tables[0][0]), "reference counts"),
        (lambda pool, tables: pool._blank.given_back.append(tables[0][0]), "free blocks are not those"),
        (lambda pool, tables: pool._keys.__setitem__(tables[2][0], 300), "index of published blocks"),
        (lambda pool, tables: pool._keys.__setitem__(tables[0][1], -1), "index of published blocks"),
        (lambda pool, tables: pool._keys.__setitem__(tables[1][1], 200), "index of published blocks"),
        (lambda pool, tables: pool._published.pop(101), "index of published blocks"),
        (lambda pool, tables: pool._published.__setitem__(101, tables[1][1]), "index of published blocks"),
        (lambda pool, tables: pool._later_copies.pop(101), "index of published blocks"),
        (lambda pool, tables: pool._later_copies[101].__setitem__(tables[0][1], None), "index of published blocks"),
        (
            lambda pool, tables: pool._later_copies.update({300: OrderedDict({tables[2][0]: None})}),
            "index of published blocks",
        ),
    ],
)
def test_wrong_books_are_noticed(spoil, message):
    pool, tables = pool_and_tables()
    spoil(pool, tables)
    with pytest.raises(AssertionError, match=message):
        pool.check(tables)
