/**
 * A run with installs: phones with keystores of their own making register, send and are attacked,
 * and the tenant's secret is taken. Then everything that the service says of them is compared with
 * what they are.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import { type FleetContext, FleetError } from '../fleet-context.ts'
import { fleetPolicy } from '../fleet-policy.ts'
import { openTenant } from '../fleet-tenant.ts'
import { makePopulation } from '../phones/population.ts'
import { createMismatches } from '../send/sent-events.ts'
import { attackAll } from './attacks.ts'
import { makeCast, makeUpDevices, type TestKeys } from './cast.ts'
import { checkSignals, readFindings } from './check-signals.ts'
import { type Exchange, makeBodies, registerAll, sendAll, speakForAll } from './exchange.ts'
import { type InstallsSummary, summarizeInstalls } from './installs-summary.ts'
import { registerApps } from './register-apps.ts'
import { readTestKeys } from './test-keys.ts'

export type InstallsOptions = { devices: number; seed: number; settleMs: number }

export type InstallsDeps = {
  context: FleetContext
  nowMs: () => number
  stop: AbortSignal
  newSuffix: () => string
  onProgress: (text: string) => void
}

/** Made-up devices for each phone that registers: 500 phones stand beside a thousand. */
const madeUpPerPhone = 2

/**
 * Runs the exchange in a new sandbox tenant of the local stack.
 * @throws FleetError when there is no local stack
 */
export async function runInstalls(
  { context, nowMs, stop, newSuffix, onProgress }: InstallsDeps,
  { devices, seed, settleMs }: InstallsOptions,
): Promise<InstallsSummary> {
  const stack = context.findStack()
  if (stack === null) {
    throw new FleetError('Installs are simulated in the running local stack: start `npm start`.')
  }
  const tenant = await openTenant(context, { webhookUrl: null, suffix: newSuffix() })
  const { tenantId, hmacSecret } = tenant
  const notes: string[] = []
  const keys = await prepareKeys(context, tenantId, notes)
  const cast = makeCast(devices, { seed, keys, nowMs })
  const mismatches = createMismatches()
  const exchange: Exchange = { ingestUrl: stack.ingest, tenantId, hmacSecret, stop, mismatches }
  const scorer = compilePolicy(fleetPolicy)
  const bodies = { seed, tenantId, scorer, startedAtMs: nowMs() }

  const registered = await registerAll(exchange, cast, (count) => {
    if (count % 25 === 0) onProgress(`registered ${count} of ${cast.length} phones`)
  })
  onProgress(`sending for ${registered.length} phones`)
  const phones = cast.map(({ phone }, index) => ({ ...phone, index }))
  await sendAll(exchange, registered, makeBodies(phones, bodies))
  onProgress('trying what a thief of requests tries')
  const attacks = await attackAll(exchange, registered)
  onProgress('speaking with the secret of the tenant')
  const stolen = inventPhones(seed, devices * madeUpPerPhone)
  const madeUp = await speakForAll(exchange, stolen, makeBodies(stolen, bodies))

  const isChecked = !stop.aborted && keys !== null
  const checked = isChecked
    ? await checkSignals({
        registered,
        madeUp,
        mismatches,
        read: (eventIds) => readFindings(context, tenantId, eventIds),
        isOver: startClock(nowMs, settleMs),
        pause: () => sleep(1_000),
      })
    : null
  if (!isChecked) notes.push('Server signals were not compared.')
  return summarizeInstalls({
    tenant,
    seed,
    cast,
    registered,
    attacks,
    madeUp: madeUp.length,
    checked,
    notes,
    mismatches,
    interrupted: stop.aborted,
    consoleUrl: stack.console,
  })
}

function startClock(nowMs: () => number, settleMs: number): () => boolean {
  const endMs = nowMs() + settleMs
  return () => nowMs() > endMs
}

/** @returns null where the stack does not know its own roots, or the tenant cannot have apps */
async function prepareKeys(
  context: FleetContext,
  tenantId: string,
  notes: string[],
): Promise<TestKeys | null> {
  const file = context.findStack()?.attestation_keys_file
  if (file === undefined) {
    notes.push('The stack has no roots of its own: every phone registers without evidence.')
    return null
  }
  const keys = readTestKeys(file)
  try {
    await registerApps(context, tenantId, keys)
    return keys
  } catch (error) {
    if (!(error instanceof FleetError)) throw error
    notes.push(`The tenant has no apps, so no phone has evidence: ${error.message}`)
    return null
  }
}

/** Stock phones with device ids that no install has. */
function inventPhones(seed: number, count: number) {
  const stock = makePopulation(seed, 50).filter(({ kind }) => kind.name === 'stock-android')
  return makeUpDevices(seed, count).map((deviceId, index) => ({
    ...stock[index % stock.length]!,
    deviceId,
    index,
  }))
}
