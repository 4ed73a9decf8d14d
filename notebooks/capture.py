"""What is in my capture: when did it move, how long was it silent, and why.

marimo edit notebooks/capture.py     # change it
marimo run notebooks/capture.py      # read it, and name a capture of your own
python notebooks/capture.py          # all of it once, without a browser
"""

import marimo

app = marimo.App(width="medium")


@app.cell
def _():
    import tempfile
    from pathlib import Path

    import marimo as mo

    import segue

    return Path, mo, segue, tempfile


@app.cell
def _(mo):
    mo.md("""
    # What is in my capture

    Name a capture of your own, made with `tcpdump -w phone.pcap` or Wireshark: TCP, MPTCP, SCTP, QUIC, WireGuard, UDP, Mobile IPv6
    and ILNPv6 are understood. Without one, a download is simulated whose laptop changes from a cable to GPRS and back, and its
    capture is looked at as if it were a stranger's.
    """)


@app.cell
def _(mo):
    own = mo.ui.text(label="capture", placeholder="/home/me/phone.pcap", full_width=True)
    own
    return (own,)


@app.cell
def _(Path, own, segue, tempfile):
    if own.value:
        capture = Path(own.value)
    else:
        folder = Path(tempfile.mkdtemp(prefix="capture-"))
        segue.run("templates/vertical", trace=False, pcap=folder)
        capture = folder / "laptop.pcapng"
    analysis = segue.analyze(capture, series=True)
    return analysis, capture


@app.cell
def _(analysis, capture, mo):
    flows, handovers = analysis.flows, analysis.handovers
    longest = handovers["interruption_s"].max()
    told = "" if longest is None else f"; the longest interruption by one took {longest:.2f} s"
    mo.md(f"**{capture.name}**: {flows['flow'].n_unique()} flows, {handovers.height} handovers{told}.")
    return (handovers,)


@app.cell
def _(mo):
    mo.md("""
    ## Handovers

    When the traffic moved from one path to another, for how long nothing came, how long until it was as fast as the new path
    allows (`t_a_s`), and what had to be sent again.
    """)


@app.cell
def _(handovers):
    handovers.select("flow", "protocol", "from_text", "to_text", "time", "interruption_s", "t_a_s", "retransmissions")


@app.cell
def _(mo):
    mo.md("""
    ## How fast it was
    """)


@app.cell
def _(analysis, segue):
    # the flow that carried most, by the path that it came over
    segue.plot.throughput(analysis)


@app.cell
def _(mo):
    mo.md("""
    ## Silences that no handover accounts for
    """)


@app.cell
def _(analysis):
    analysis.outages


if __name__ == "__main__":
    app.run()
