"""The manifests: valid by the schemas of the API, restricted pods, and the spec and configuration that p2pdp reads."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from p2pdp.files.spec import parse_spec
from tests.support.sources import TOP

FOLDER = TOP / "deploy" / "kubernetes"
VERSIONS = ("1.29", "1.33")
LISTS = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())


def documents() -> list[dict[str, Any]]:
    return [document for name in LISTS["resources"] for document in yaml.safe_load_all((FOLDER / name).read_text())]


def of_kind(kind: str) -> dict[str, dict[str, Any]]:
    return {document["metadata"]["name"]: document for document in documents() if document["kind"] == kind}


@pytest.mark.parametrize("version", VERSIONS)
def test_every_document_fits_its_schema(version: str) -> None:
    for document in documents():
        kubernetes_validate.validate(document, version, strict=True)


def test_a_wrong_document_would_be_seen() -> None:
    document = of_kind("StatefulSet")["node"]
    document["spec"]["template"]["spec"]["containers"][0]["readOnly"] = True
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(document, VERSIONS[0], strict=True)


def test_every_file_is_listed() -> None:
    assert sorted(LISTS["resources"]) == sorted(
        path.name for path in FOLDER.glob("*.yaml") if path.name != "kustomization.yaml"
    )


def test_pods_are_restricted_and_have_a_volume_each() -> None:
    for name, document in of_kind("StatefulSet").items():
        pod = document["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        (container,) = pod["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
        }  # fmt: skip
        assert {"livenessProbe", "readinessProbe", "resources"} <= set(container)
        assert "memory" in container["resources"]["limits"]
        (claim,) = document["spec"]["volumeClaimTemplates"]
        assert {"name": claim["metadata"]["name"], "mountPath": "/data"} in container["volumeMounts"]
        assert document["spec"]["serviceName"] in of_kind("Service"), name
        assert name in str(of_kind("NetworkPolicy").values())


def test_as_many_nodes_are_awaited_as_there_are() -> None:
    sets = of_kind("StatefulSet")
    environment = sets["bootstrap"]["spec"]["template"]["spec"]["containers"][0]["env"]
    assert {"name": "P2PDP_NODES", "value": str(sets["node"]["spec"]["replicas"])} in environment


def test_the_spec_and_the_configuration_are_those_that_p2pdp_reads() -> None:
    data = of_kind("ConfigMap")["spec"]["data"]
    spec = parse_spec(data["spec.toml"], None)
    node = tomllib.loads(data["node.toml"])
    assert spec.run.protocol in node["accept"]["protocols"]
    assert spec.data.kind == node["data"]["kind"]


def test_no_secret_is_among_them() -> None:
    assert of_kind("Secret") == {}
    assert "kubectl -n p2pdp create secret generic report" in (FOLDER / "kustomization.yaml").read_text()
    assert Path(FOLDER / "kustomization.yaml").is_file()
