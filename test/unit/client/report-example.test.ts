/** The example of the page of ingest, from an SDK's report to the answer, is what really happens. */
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { fromFreeRasp } from '../../../shared/client/mappings/freerasp.ts'
import { mergeSignals } from '../../../shared/client/mappings/merge-signals.ts'
import { toEventId } from '../../../shared/core/base/ids.ts'
import { checkTelemetry } from '../../../shared/core/telemetry/check-telemetry.ts'

const page = readFileSync(new URL('../../../services/ingest/README.md', import.meta.url), 'utf8')
const [, example = ''] = page.split('### From an SDK')
const [report, body, answer] = [...example.matchAll(/```json\n(.*?)```/gs)].map(([, text]) =>
  JSON.parse(text!),
)

it('an SDK’s report becomes the signals, and the body the answer, without a warning', () => {
  const boot = { root: { verified_boot_state: report.bootState } }
  expect(body.signals).toEqual(mergeSignals(fromFreeRasp(report.report), boot))
  const bytes = Buffer.from(JSON.stringify(body))
  const receivedAtMs = Date.parse(body.occurred_at)
  const { status, warnings, score } = checkTelemetry(bytes, receivedAtMs)
  expect({ status, warnings }).toEqual({ status: 200, warnings: [] })
  expect(answer).toEqual({ status: 'accepted', ...score, event_id: toEventId(bytes) })
})
