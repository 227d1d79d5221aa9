"""`croissant.json`: Croissant 1.1 with RAI 1.0 and PROV, one RecordSet per config and split.

Written as a plain dictionary: the typed API of mlcroissant 1.1.1 misspells two RAI properties.
"""

from __future__ import annotations

import json
from typing import Any

from ..schema import SPLIT, description, feature_dict, part_descriptions
from .manifest import ConfigManifest, Manifest

CONFORMS_TO = [
    "http://mlcommons.org/croissant/1.1",
    "http://mlcommons.org/croissant/RAI/1.0",
]

_CROISSANT_TERMS = (
    "arrayShape citeAs column containedIn equivalentProperty extract field fileProperty "
    "fileObject fileSet format includes isArray isLiveDataset jsonPath key md5 parentField path "
    "recordSet references regex repeated replace samplingRate separator source subField "
    "transform"
).split()

CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "prov": "http://www.w3.org/ns/prov#",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "description": {"@container": "@language"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "name": {"@container": "@language"},
    **{term: f"cr:{term}" for term in _CROISSANT_TERMS},
}

_DATA_TYPES = {
    "string": "sc:Text",
    "int64": "cr:Int64",
    "float64": "cr:Float64",
    "bool": "sc:Boolean",
}


def render_croissant(manifest: Manifest, rai: dict[str, Any]) -> str:
    """The document as JSON text; `rai` holds its RAI and PROV properties."""
    document = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS_TO,
        "name": "counterprior-holdout" if manifest.private else "counterprior",
        "description": "Does an image generator follow the prompt, or its prior? Prompts, "
        "constrained pairs, edits and seed images that tell the two apart.",
        "url": manifest.url,
        "license": ["https://spdx.org/licenses/" + name for name in _licenses(manifest)],
        "version": manifest.version,
        "datePublished": manifest.date,
        "citeAs": f"counterprior {manifest.version}, the counterprior maintainers, {manifest.url}",
        "creator": {"@type": "sc:Organization", "name": "The counterprior maintainers"},
        "keywords": ["text-to-image", "image editing", "benchmark", "spatial reasoning", "bias"],
        "inLanguage": manifest.languages,
        "isLiveDataset": False,
        **rai,
        "distribution": [_file_object(config, manifest) for config in manifest.configs],
        "recordSet": [_record_set(config) for config in manifest.configs],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def record_set_id(config: str) -> str:
    """The id of a config's RecordSet."""
    return f"{config}_{SPLIT}"


def _licenses(manifest: Manifest) -> list[str]:
    return sorted({license_id for c in manifest.configs for license_id in c.license.split(" AND ")})


def _file_object(config: ConfigManifest, manifest: Manifest) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": config.file,
        "name": config.file,
        "description": f"Rows of config {config.name}, split {SPLIT}.",
        # The tag never moves, so the URL always returns the same file.
        "contentUrl": f"{manifest.url}/resolve/{manifest.tag}/{config.file}",
        "contentSize": f"{config.bytes} B",
        "encodingFormat": "application/x-parquet",
        "sha256": config.sha256,
    }


def _record_set(config: ConfigManifest) -> dict[str, Any]:
    record_set = record_set_id(config.name)
    return {
        "@type": "cr:RecordSet",
        "@id": record_set,
        "name": record_set,
        "description": f"{config.summary} {_rows(config)}.",
        "key": {"@id": f"{record_set}/id"},
        "field": [
            _field(config, record_set, name, feature)
            for name, feature in feature_dict(config.name).items()
        ],
    }


def _rows(config: ConfigManifest) -> str:
    rows = f"{config.rows} rows ({config.status})"
    if config.elsewhere:
        rows += f", {config.elsewhere} more in the other part of a hold-out"
    return rows


def _field(config: ConfigManifest, record_set: str, name: str, feature: Any) -> dict[str, Any]:
    field: dict[str, Any] = {
        "@type": "cr:Field",
        "@id": f"{record_set}/{name}",
        "name": name,
        "description": description(config.name, name),
    }
    source = {"fileObject": {"@id": config.file}, "extract": {"column": name}}
    if "_type" not in feature:
        part_texts = part_descriptions(config.name, name)
        field["subField"] = [
            {
                "@type": "cr:Field",
                "@id": f"{record_set}/{name}/{member}",
                "name": member,
                "description": part_texts[member],
                **_data_type(inner),
                "source": {**source, "transform": {"jsonPath": member}},
            }
            for member, inner in feature.items()
        ]
        return field
    if feature["_type"] == "Image":
        source = {**source, "transform": {"jsonPath": "bytes"}}
    return {**field, **_data_type(feature), "source": source}


def _data_type(feature: dict[str, Any]) -> dict[str, Any]:
    if feature["_type"] == "Image":
        return {"dataType": "sc:ImageObject"}
    if feature["_type"] == "Sequence":
        inner = _DATA_TYPES[feature["feature"]["dtype"]]
        return {"dataType": inner, "isArray": True, "arrayShape": "-1"}
    return {"dataType": _DATA_TYPES[feature["dtype"]]}
