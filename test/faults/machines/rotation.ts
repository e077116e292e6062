/**
 * The rotation coordinator on real PostgreSQL and NATS with real edges: sequential and concurrent
 * rotations, interrupted at each stage, undone later, while edges leave and join. A returned secret
 * is accepted at every edge at once and no older one is; two secrets are never accepted, and at the
 * end one is.
 */
import fc from 'fast-check'
import { createTenant } from '../../../services/console/tenants/manage-tenants.ts'
import {
  type RotationStage,
  rotate,
  undoAbandonedRotations,
} from '../../../services/console/tenants/rotation.ts'
import type { ConsoleRig, TestEdge } from '../../support/http/console-rig.ts'
import { until } from '../../support/process/until.ts'
import {
  anyCommands,
  demand,
  demandEqual,
  type MachineOptions,
  type MachineReport,
  type Note,
  runCommands,
  runMachine,
  toCommand,
} from './run-machine.ts'

const stages: RotationStage[] = [
  'locked',
  'off',
  'off_projected',
  'off_everywhere',
  'on',
  'on_projected',
]
const edgesMax = 3

let tenants = 0

async function createHistory(rig: ConsoleRig, edges: TestEdge[], note: Note) {
  const tenantId = `rotated-${process.pid}-${++tenants}`
  const created = await createTenant(rig.deps, {
    tenantId,
    name: '',
    environment: 'sandbox',
    webhookUrl: null,
    actor: 'machine',
  })
  /** Every secret, in order of creation. */
  const secrets = [created.hmac_secret]
  /** The newest secret that a rotation returned. */
  let returned = created.hmac_secret
  const request = { tenantId, actor: 'machine', hmac: true, webhook: false, apiKey: false }
  const working = () =>
    secrets.filter((secret) => edges.some((edge) => edge.judge(tenantId, secret) === 'accepted'))
  const readSecrets = async () => {
    const { rows } = await rig.postgres.query<{ sealed: string }>(
      `select sealed from tenant_secrets where tenant_id = $1 and kind = 'hmac'
       and sealed is not null order by secret_id`,
      [tenantId],
    )
    for (const { sealed } of rows) {
      const secret = rig.deps.sealer.unseal(sealed, { tenantId, kind: 'hmac' })
      if (!secrets.includes(secret)) secrets.push(secret)
    }
    demand(working().length <= 1, `${working().length} secrets work at one time`)
  }
  /** The last projected revision, and the last one that the console waited for. */
  let [projected, awaited] = [0, 0]
  const watched = () => {
    const { directory } = rig.deps
    return {
      ...rig.deps,
      directory: {
        connected: directory.connected,
        findEpoch: directory.findEpoch,
        project: async (projection: Parameters<typeof directory.project>[0]) => {
          projected = await directory.project(projection)
          return projected
        },
        awaitEdges: async (revision: number) => {
          const edgesWaited = await directory.awaitEdges(revision)
          awaited = Math.max(awaited, revision)
          return edgesWaited
        },
      },
    }
  }
  const judge = (secret: string) => edges.map((edge) => edge.judge(tenantId, secret))
  const demandReturned = (secret: string) => {
    returned = secret
    if (!secrets.includes(secret)) secrets.push(secret)
    demandEqual(
      judge(secret),
      edges.map(() => 'accepted'),
      'the new secret, as it is returned',
    )
    for (const old of secrets.filter((one) => one !== secret)) {
      demandEqual(
        judge(old),
        edges.map(() => 'refused'),
        'an older secret, as a newer is returned',
      )
    }
  }
  /** At the end one secret is accepted everywhere. */
  const settle = async () => {
    await undoAbandonedRotations(rig.deps)
    await readSecrets()
    const settled = async () => {
      // As the console does every two seconds.
      await rig.projection.repair()
      const [only, ...others] = working()
      return (
        only !== undefined &&
        others.length === 0 &&
        judge(only).every((verdict) => verdict === 'accepted')
      )
    }
    await until('one secret works everywhere', settled)
    const [only] = working()
    // That secret is never older than the last returned one.
    demand(secrets.indexOf(only!) >= secrets.indexOf(returned), 'an old secret came back')
  }
  return {
    rotate: async () => {
      const checkpoint = async (stage: RotationStage) => {
        await readSecrets()
        if (stage.endsWith('everywhere'))
          demand(awaited >= projected, `${stage}: the console did not wait`)
      }
      const answer = await rotate({ ...watched(), checkpoint }, request)
      note('rotated')
      demandReturned(answer.hmac_secret!)
    },
    rotateAtOnce: async (count: number) => {
      const answers = await Promise.all(
        Array.from({ length: count }, () => rotate(rig.deps, request)),
      )
      const last = answers.map((answer) => answer.hmac_secret!)
      for (const secret of last) if (!secrets.includes(secret)) secrets.push(secret)
      note('rotated at once with another', count)
      const [only, ...others] = working()
      demand(
        others.length === 0 && last.includes(only!),
        'the working secret is not the last returned one',
      )
      demandReturned(only!)
    },
    interrupt: async (stage: RotationStage) => {
      const checkpoint = async (reached: RotationStage) => {
        await readSecrets()
        if (reached === stage) throw new Error('interrupted')
      }
      await rotate({ ...rig.deps, checkpoint }, request).catch(() => undefined)
      note(`interrupted: ${stage}`)
      await settle()
    },
    leave: async () => {
      if (edges.length === 1) return
      await edges.shift()!.close()
      note('an edge left')
    },
    join: async () => {
      if (edges.length >= edgesMax) return
      edges.push(await rig.startEdge())
      note('an edge joined')
      await settle()
    },
  }
}

type History = Awaited<ReturnType<typeof createHistory>>
const rotateOnce = fc.constant(toCommand<History>('rotate', (one) => one.rotate()))
const rotateAtOnce = fc
  .integer({ min: 2, max: 3 })
  .map((n) => toCommand<History>(`rotateAtOnce(${n})`, (one) => one.rotateAtOnce(n)))
const interrupt = fc
  .constantFrom(...stages)
  .map((stage) => toCommand<History>(`interrupt(${stage})`, (one) => one.interrupt(stage)))
const leave = fc.constant(toCommand<History>('leave', (one) => one.leave()))
const join = fc.constant(toCommand<History>('join', (one) => one.join()))
const commands = anyCommands<History>(
  [rotateOnce, rotateOnce, rotateAtOnce, interrupt, interrupt, interrupt, leave, join],
  10,
)

/** Starts its edges itself; those left at the end are closed with the rig. */
export async function runRotation(
  options: MachineOptions,
  rig: ConsoleRig,
): Promise<MachineReport> {
  const edges = await Promise.all([rig.startEdge(), rig.startEdge()])
  return runMachine(options, commands, async (note, steps) => {
    await runCommands(await createHistory(rig, edges, note), steps)
  })
}
