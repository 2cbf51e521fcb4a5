# manifest.py - every field of deploy/kubernetes.yaml is one of the API's types,
# and of its kind. Usage: python3 tests/manifest.py FILE...
#
# By the types that the API's own Python client has (python3-kubernetes), which
# are made from the server's schema: a word that is no field, a number where a
# text belongs, what is missing. Exit 77: no such client here.
# SPDX-License-Identifier: Apache-2.0
import re
import sys

try:
    import yaml
    from kubernetes.client import models
except ImportError:
    sys.exit(77)

PLAIN = {'str': str, 'int': int, 'bool': bool, 'float': (int, float)}
bad = []


def check(v, kind, at):
    inner = re.fullmatch(r'(list|dict)[\[(](?:str, )?(.*)[\])]', kind)
    if inner and inner[1] == 'list':
        if not isinstance(v, list):
            bad.append(f'{at}: a list belongs here')
            return
        for i, x in enumerate(v):
            check(x, inner[2], f'{at}[{i}]')
    elif inner:
        if not isinstance(v, dict):
            bad.append(f'{at}: names and values belong here')
            return
        for k, x in v.items():
            check(x, inner[2], f'{at}.{k}')
    elif kind in PLAIN:
        if not isinstance(v, PLAIN[kind]) or (isinstance(v, bool) and kind != 'bool'):
            bad.append(f'{at}: {v!r} is no {kind}')
    elif kind != 'object':  # a number or a text: ports, shares
        check_model(v, getattr(models, kind), at)


def check_model(v, model, at):
    fields = {model.attribute_map[a]: t for a, t in model.openapi_types.items()}
    if not isinstance(v, dict):
        bad.append(f'{at}: a {model.__name__} belongs here')
        return
    for k, x in v.items():
        if k in fields:
            check(x, fields[k], f'{at}.{k}')
        else:
            bad.append(f'{at}.{k}: {model.__name__} has no such field')
    try:  # what must be there
        model(**{a: v.get(k) for a, k in model.attribute_map.items()})
    except ValueError as e:
        bad.append(f'{at}: {e}')


def model_of(doc):
    group, _, version = doc['apiVersion'].rpartition('/')
    return getattr(models, version[:1].upper() + version[1:] + doc['kind'])


for name in sys.argv[1:]:
    with open(name) as f:
        docs = list(yaml.safe_load_all(f))
    for doc in docs:
        check_model(doc, model_of(doc), doc['kind'])
    print(f'{name}: {len(docs)} objects')
for line in bad:
    print(line)
sys.exit(bool(bad))
