/** The `signals` of a submission with six empty categories. */
import type { Signals } from '#shared/core/signals/signal-definition.ts'

export const noSignals: Signals = {
  root: {},
  emulator: {},
  debugger: {},
  tamper: {},
  ecosystem: {},
  network: {},
}
