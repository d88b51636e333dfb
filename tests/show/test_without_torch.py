import os
import subprocess
import sys

SHOWN = """
import sys
from tests.show import flows, recordings
from autograd_lab import show
{body}
"""


def run(body, **env):
    return subprocess.run(
        [sys.executable, "-c", SHOWN.format(body=body)],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONPATH": ".", **env},
    ).stdout


def test_text_needs_neither_matplotlib_nor_torch():
    out = run(
        "repr(recordings.scalar()); print('matplotlib' in sys.modules, 'torch' in sys.modules)"
    )
    assert out.split() == [b"False", b"False"]


def test_pictures_never_load_pyplot_or_torch():
    body = (
        "show.flow_figure(flows.steady(3, 0.5)).png(); recordings.scalar()._repr_mimebundle_();"
        "print('matplotlib.pyplot' in sys.modules, 'torch' in sys.modules)"
    )
    assert run(body).split() == [b"False", b"False"]


def test_two_processes_show_the_same_bytes():
    body = (
        "from autograd_lab.show.page import page_html\n"
        "print(page_html(recordings.with_problems()), flows.all_states(),"
        " recordings.chain(300)._repr_mimebundle_(), show.flow_figure(flows.all_states()).svg())"
    )
    assert run(body, PYTHONHASHSEED="1") == run(body, PYTHONHASHSEED="2")


def test_an_unknown_name_lists_the_known_ones():
    out = run("try: show.nothing\nexcept AttributeError as error: print(error)")
    assert b"to_html" in out
