"""My phone walks from Wi-Fi to 5G: one scenario, asked again and again.

marimo edit notebooks/walk.py        # change it
marimo run notebooks/walk.py         # read it, and move the sliders
python notebooks/walk.py             # all of it once, without a browser
"""

import marimo

app = marimo.App(width="medium")


@app.cell
def _():
    import marimo as mo
    import polars as pl

    import segue
    from segue.summary import sentence

    return mo, pl, segue, sentence


@app.cell
def _(mo):
    mo.md("""
    # My phone walks from Wi-Fi to 5G

    A phone in a call leaves the Wi-Fi at home. How it keeps the call is the scheme; how far the Wi-Fi reaches and how fast it goes
    are yours to change. Each change is a run of the simulator: the same settings give the same bits.
    """)


@app.cell
def _(mo):
    scheme = mo.ui.dropdown(["ilnp-soft", "ilnp-hard", "mip6", "mip6-ro"], value="ilnp-soft", label="scheme")
    speed = mo.ui.slider(0.5, 5.0, step=0.5, value=1.5, label="speed, m/s", show_value=True)
    radius = mo.ui.slider(15, 40, step=5, value=25, label="reach of the Wi-Fi, m", show_value=True)
    mo.hstack([scheme, speed, radius])
    return radius, scheme, speed


@app.cell
def _(radius, scheme, segue, speed):
    run = segue.run(
        "templates/wifi-to-5g",
        {
            "scheme": scheme.value,
            "mobile.speed": f"{speed.value} m/s",
            "cell.wifi.radius": f"{radius.value} m",
        },
    )
    run
    return (run,)


@app.cell
def _(mo):
    mo.md("""
    ## When it moved, and what that cost
    """)


@app.cell
def _(run):
    run.handovers.select("host", "flow", "time", "interruption_s", "latency_s", "lost_packets")


@app.cell
def _(run, segue):
    # what arrives at either end is heard; what is between two arrivals is not
    silences = None
    for flow in run.flows["flow"]:
        silences = segue.plot.gaps(run, flow=flow, ax=silences, legend=False)
    silences.legend()
    silences


@app.cell
def _(mo):
    mo.md("""
    ## All schemes side by side

    The same walk with each of them: how long nothing came, and how the call sounded around its worst handover (MOS of the
    E-model: 4.4 is as good as it gets, below 3.1 nearly all are dissatisfied, by ITU-T G.107 annex B).
    """)


@app.cell
def _(pl, radius, segue, speed):
    def measured(name):
        one = segue.run(
            "templates/wifi-to-5g",
            {"scheme": name, "mobile.speed": f"{speed.value} m/s", "cell.wifi.radius": f"{radius.value} m"},
            trace=False,
        ).metrics
        around = [h["mos"] for way in one.applications for h in way["handovers"] if h["mos"] is not None]
        return {
            "scheme": name,
            "handovers": len({handover.time_s for handover in one.handovers}),
            "worst interruption, ms": one.interruption_s.max * 1e3 if one.interruption_s else None,
            "is no more than a lower bound": one.interruption_s.max_censored if one.interruption_s else None,
            "MOS of the worst handover": min(around, default=None),
        }

    table = pl.DataFrame([measured(name) for name in ("ilnp-soft", "ilnp-hard", "mip6", "mip6-ro")])
    table
    return (table,)


@app.cell
def _(mo, run, sentence):
    mo.md(
        f"**{sentence(run.metrics)}** To keep this run: `run.save('walk.segue')`, and `segue.load('walk.segue')` has it again."
    )


if __name__ == "__main__":
    app.run()
