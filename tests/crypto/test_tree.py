from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.crypto.tree import HASH_BYTES, Tree, TreeError, root_of
from tests.support.known import flips

SIZES = range(1, 71)
# The leaves and roots that implementations of Certificate Transparency are tested with, for the first 0 to 8 of them.
LEAVES = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


def leaves_of(size: int) -> list[bytes]:
    return [b"leaf %d" % number for number in range(size)]


def split(size: int) -> int:
    """The largest power of two below the size."""
    return 1 << (size - 1).bit_length() - 1


def root_by_definition(leaves: list[bytes]) -> bytes:
    if len(leaves) == 1:
        return sha256(b"\0" + leaves[0]).digest()
    k = split(len(leaves))
    return sha256(b"\1" + root_by_definition(leaves[:k]) + root_by_definition(leaves[k:])).digest()


def path_by_definition(place: int, leaves: list[bytes]) -> bytes:
    if len(leaves) == 1:
        return b""
    k = split(len(leaves))
    if place < k:
        return path_by_definition(place, leaves[:k]) + root_by_definition(leaves[k:])
    return path_by_definition(place - k, leaves[k:]) + root_by_definition(leaves[:k])


@pytest.mark.parametrize("size", range(9))
def test_published_roots(size: int) -> None:
    leaves = [bytes.fromhex(leaf) for leaf in LEAVES[:size]]
    assert Tree(leaves).root.hex() == ROOTS[size]
    for place in range(size):
        assert root_of(size, {place: leaves[place]}, Tree(leaves).proof([place])).hex() == ROOTS[size]


@pytest.mark.parametrize("size", SIZES)
def test_roots_and_proofs_of_one_place_are_those_of_the_definition(size: int) -> None:
    leaves = leaves_of(size)
    tree = Tree(leaves)
    assert tree.root == root_by_definition(leaves)
    for place in range(size):
        assert tree.proof([place]) == path_by_definition(place, leaves)
        assert root_of(size, {place: leaves[place]}, tree.proof([place])) == tree.root


some_places = st.sampled_from(SIZES).flatmap(
    lambda size: st.tuples(st.just(size), st.sets(st.integers(0, size - 1), min_size=1))
)


@given(some_places)
def test_several_places_take_one_proof_that_is_as_long_as_it_must_be(drawn: tuple[int, set[int]]) -> None:
    size, places = drawn
    leaves = leaves_of(size)
    tree = Tree(leaves)
    proof, known = tree.proof(places), {place: leaves[place] for place in places}
    assert root_of(size, known, proof) == tree.root
    assert len(proof) <= sum(len(tree.proof([place])) for place in places)
    for wrong in (proof[:-HASH_BYTES], proof[:-1], proof + b"\0", proof + bytes(HASH_BYTES)):
        if wrong != proof:
            with pytest.raises(TreeError):
                root_of(size, known, wrong)
    for wrong in flips(proof[:HASH_BYTES]):
        assert root_of(size, known, wrong + proof[HASH_BYTES:]) != tree.root
    for place in places:
        assert root_of(size, known | {place: b"another"}, proof) != tree.root
    if len(places) == size:
        assert proof == b""


@given(some_places, st.data())
def test_leaves_at_other_places_give_another_root(drawn: tuple[int, set[int]], data: st.DataObject) -> None:
    size, places = drawn
    others = data.draw(st.sets(st.integers(0, size - 1), min_size=len(places), max_size=len(places)))
    leaves = leaves_of(size)
    tree = Tree(leaves)
    moved = dict(zip(sorted(others), (leaves[place] for place in sorted(places)), strict=True))
    try:
        assert (root_of(size, moved, tree.proof(places)) == tree.root) == (others == places)
    except TreeError:
        assert others != places


@pytest.mark.parametrize("size", range(2, 71))
def test_a_whole_list_has_the_root_of_its_own_size_only(size: int) -> None:
    leaves = leaves_of(size)
    for other in (*leaves[:-1],), (*leaves, leaves[-1]), (*leaves, b""):
        assert Tree(other).root != Tree(leaves).root


@pytest.mark.parametrize("size", range(2, 71))
def test_no_node_can_be_shown_as_a_leaf(size: int) -> None:
    leaves = leaves_of(size)
    root, k = root_by_definition(leaves), split(size)
    below = root_by_definition(leaves[:k]) + root_by_definition(leaves[k:])
    for leaf in (below, b"\1" + below, root):
        assert root_of(1, {0: leaf}, b"") != root


@pytest.mark.parametrize(("size", "places"), [(3, []), (3, [3]), (3, [-1]), (3, [0, 3]), (0, []), (0, [0]), (-1, [0])])
def test_places_outside_of_the_list_are_refused(size: int, places: list[int]) -> None:
    with pytest.raises(TreeError, match=f"a tree of {size}"):
        root_of(size, dict.fromkeys(places, b""), b"")
    if size >= 0:
        with pytest.raises(TreeError):
            Tree(leaves_of(size)).proof(places)


def test_a_proof_grows_with_the_logarithm_of_the_size() -> None:
    tree = Tree(leaves_of(10_000))
    assert len(tree.proof([4711])) == 14 * HASH_BYTES
    assert len(tree.proof(range(0, 10_000, 1000))) <= 10 * 14 * HASH_BYTES
