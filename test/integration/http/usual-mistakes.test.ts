// The usual mistakes of integrators, each with an answer that says what to change, from one edge
// and one api on real servers.
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createKey } from '../../../services/console/tenants/manage-keys.ts'
import * as client from '../../../shared/client/client.ts'
import { makeAlertCandidate } from '../../support/alerts/alert-candidates.ts'
import { type ApiRig, addApiKey, startApiRig } from '../../support/http/api-rig.ts'
import { type CallAnswer, type Caller, createCaller } from '../../support/http/http-call.ts'
import { apiMistakes, type RightCall } from '../../support/mistakes/api-mistakes.ts'
import { answeredMistakes } from '../../support/mistakes/client-mistakes.ts'
import { envelopeMistakes } from '../../support/mistakes/envelope-mistakes.ts'
import { ingestMistakes, type RightSubmission } from '../../support/mistakes/ingest-mistakes.ts'
import { installMistakes } from '../../support/mistakes/install-mistakes.ts'
import { type Mistake, readWords } from '../../support/mistakes/mistake.ts'
import { until } from '../../support/process/until.ts'
import {
  type EdgeRig,
  startEdgeRig,
  type TestEdge,
  telemetryOf,
} from '../../support/telemetry/edge-rig.ts'

const caller: Caller = createCaller()
afterAll(() => caller.close())

async function makeMistake<Right>(
  url: string,
  { make, status, code, says }: Mistake<Right>,
  right: Right,
): Promise<void> {
  const { method = 'GET', path, headers, body } = make(right)
  const answer = await caller.send(url, { method, path, headers, body: body && Buffer.from(body) })
  expectAnswer(answer, { status, code, says })
}

function expectAnswer(
  answer: CallAnswer,
  { status, code, says }: Pick<Mistake<never>, 'status' | 'code' | 'says'>,
): void {
  const body = JSON.parse(answer.text) as Record<string, unknown>
  expect({ status: answer.status, code: body.code ?? null }, answer.text).toEqual({ status, code })
  const words = readWords(body)
  for (const text of says) expect(words).toContain(text)
}

describe('telemetry', () => {
  let rig: EdgeRig
  let edge: TestEdge
  let right: RightSubmission
  // Fixed, so that the right signature has a character that base64url writes in another way.
  const secret = 'q3ZzVx_0cJ5mN8rT2uW4yA6bD9eG1hK7pL-sXvQfRiM'

  beforeAll(async () => {
    rig = await startEdgeRig()
    await rig.projectTenant('bank', { environment: 'sandbox', secret })
    const suspended = await rig.projectTenant('closed', { status: 'suspended' })
    edge = await rig.startEdge()
    await until('the edge knows them', () => edge.directory.revision() >= suspended.revision)
    right = {
      secret,
      webhookSecret: `whsec_${'A'.repeat(43)}=`,
      apiKey: `dpk_sandbox_${'a'.repeat(48)}`,
      suspended,
      fields: telemetryOf('bank', { device_id: 'phone-1', session_id: 'launch-3' }),
    }
  })
  afterAll(() => rig?.stop())

  const mistakes = [...ingestMistakes, ...envelopeMistakes, ...installMistakes]

  it.each(mistakes)('$name: $status', (mistake) => makeMistake(edge.url, mistake, right))

  it('has another name for each mistake', () => {
    const names = mistakes.map(({ name }) => name)
    expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([])
  })

  it.each(answeredMistakes)('with the client: $name', async ({ make, error, says }) => {
    const call = async () =>
      make({
        client,
        telemetry: right.fields as client.Telemetry,
        options: { ingestUrl: edge.url, hmacSecret: secret },
        internalUrl: edge.internalUrl,
      })
    const failure = (await call().then(
      () => expect.unreachable(),
      (thrown) => thrown,
    )) as Error
    expect(failure.name, failure.message).toBe(error)
    for (const text of says) expect(failure.message).toContain(text)
    expect(failure.message).not.toContain(secret)
  })
})

describe('the REST API', () => {
  let rig: ApiRig
  let right: RightCall

  beforeAll(async () => {
    rig = await startApiRig()
    right = await prepare()
  })
  afterAll(() => rig?.close())

  async function prepare(): Promise<RightCall> {
    const tenantId = 'bank'
    const oldKey = await rig.addTenant(tenantId)
    await rig.postgres.query(`update api_keys set state = 'retired', retired_at = now()`)
    const key = await addApiKey(rig.postgres, tenantId, 'live')
    const candidates = ['s1', 's2'].map((sessionId) =>
      makeAlertCandidate({ tenantId, sessionId, action: 'BLOCK' }),
    )
    await rig.alerts.raiseAlerts(candidates, Date.now)
    const list = await rig.call('/v1/di/alerts?decision=BLOCK&limit=1', { key })
    const { data, next_cursor: cursor } = list.json<{
      data: { alert_id: string }[]
      next_cursor: string
    }>()
    const made = {
      tenantId,
      name: 'writer',
      scopes: ['alerts:write' as const, 'lists:write' as const],
      actor: 'ada',
    }
    const { api_key: writer } = await createKey(
      { postgres: rig.postgres, sealer: {} as never, randomBytes },
      made,
    )
    return { key, writer, oldKey, hmacSecret: 'x'.repeat(43), alertId: data[0]!.alert_id, cursor }
  }

  it.each(apiMistakes)('$name: $status', (mistake) => makeMistake(rig.url, mistake, right))
})
