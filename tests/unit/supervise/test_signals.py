"""The witness of signals to the group."""

import os
import signal

from memfit.supervise.signals import open_witness


def test_a_stopped_witness_does_not_hold_up_the_end():
    witness = open_witness()
    os.kill(witness._pid, signal.SIGSTOP)
    signal.alarm(10)  # a hang would end by this

    witness.close()

    signal.alarm(0)


def test_what_a_witness_has_received_is_known_after_its_end():
    witness = open_witness()
    os.kill(witness._pid, signal.SIGUSR1)

    witness.close()

    assert witness.has_received(signal.SIGUSR1)
    assert not witness.has_received(signal.SIGUSR2)
