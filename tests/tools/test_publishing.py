from tools.publishing import publish


def write(text):
    def fill(folder):
        (folder / "figures").mkdir(exist_ok=True)
        (folder / "page.md").write_text("page", encoding="utf-8")
        (folder / "figures" / "figure.svg").write_text(text, encoding="utf-8")

    return fill


def test_what_was_written_is_found_the_same(tmp_path):
    assert publish(write("drawn"), check=False, folder=tmp_path) == 0
    assert (tmp_path / "figures" / "figure.svg").read_text(encoding="utf-8") == "drawn"
    assert publish(write("drawn"), check=True, folder=tmp_path) == 0


def test_a_check_names_what_differs_and_leaves_it(tmp_path, capsys):
    assert publish(write("drawn"), check=True, folder=tmp_path) == 1
    assert not list(tmp_path.iterdir())
    assert capsys.readouterr().err.count("differs") == 2
    publish(write("drawn"), check=False, folder=tmp_path)
    assert publish(write("otherwise"), check=True, folder=tmp_path) == 1
    assert capsys.readouterr().err == "figures/figure.svg differs from what would be written\n"
    assert (tmp_path / "figures" / "figure.svg").read_text(encoding="utf-8") == "drawn"
