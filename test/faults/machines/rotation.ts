/**
 * The rotation coordinator on real Postgres and NATS with real edges: rotations one after another
 * and at once, broken off at each of their stages, swept up, with edges that leave and come. What a
 * rotation returned works at every edge at once and nothing older does; whatever broke off, no two
 * secrets ever work, and in the end one does, everywhere.
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
  /** Every secret that there ever was, in the order in which they came to be. */
  const secrets = [created.hmac_secret]
  /** The newest one that the tenant was told. */
  let told = created.hmac_secret
  const request = { tenantId, actor: 'machine', hmac: true, webhook: false, apiKey: false }
  const working = () =>
    secrets.filter((secret) => edges.some((edge) => edge.judge(tenantId, secret) === 'accepted'))
  const learn = async () => {
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
  /** The last revision that was put before the edges, and the last that was waited for. */
  let [projected, awaited] = [0, 0]
  const watched = () => {
    const { directory } = rig.deps
    return {
      ...rig.deps,
      directory: {
        connected: directory.connected,
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
  const demandTold = (secret: string) => {
    told = secret
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
  /** In the end there is one secret, and it works everywhere. */
  const settle = async () => {
    await undoAbandonedRotations(rig.deps)
    await learn()
    const settled = async () => {
      // As the console does every other second.
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
    // Older than what the tenant was told last it can never be.
    demand(secrets.indexOf(only!) >= secrets.indexOf(told), 'an old secret came back')
  }
  return {
    rotate: async () => {
      const checkpoint = async (stage: RotationStage) => {
        await learn()
        if (stage.endsWith('everywhere')) demand(awaited >= projected, `${stage}: nobody waited`)
      }
      const answer = await rotate({ ...watched(), checkpoint }, request)
      note('rotated')
      demandTold(answer.hmac_secret!)
    },
    rotateAtOnce: async (count: number) => {
      const answers = await Promise.all(
        Array.from({ length: count }, () => rotate(rig.deps, request)),
      )
      const last = answers.map((answer) => answer.hmac_secret!)
      for (const secret of last) if (!secrets.includes(secret)) secrets.push(secret)
      note('rotated at once with another', count)
      const [only, ...others] = working()
      demand(others.length === 0 && last.includes(only!), 'what works was not the last one told')
      demandTold(only!)
    },
    breakOff: async (stage: RotationStage) => {
      const checkpoint = async (reached: RotationStage) => {
        await learn()
        if (reached === stage) throw new Error('broken off')
      }
      await rotate({ ...rig.deps, checkpoint }, request).catch(() => undefined)
      note(`broken off: ${stage}`)
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
      note('an edge came')
      await settle()
    },
  }
}

type History = Awaited<ReturnType<typeof createHistory>>
const rotateOnce = fc.constant(toCommand<History>('rotate', (one) => one.rotate()))
const rotateAtOnce = fc
  .integer({ min: 2, max: 3 })
  .map((n) => toCommand<History>(`rotateAtOnce(${n})`, (one) => one.rotateAtOnce(n)))
const breakOff = fc
  .constantFrom(...stages)
  .map((stage) => toCommand<History>(`breakOff(${stage})`, (one) => one.breakOff(stage)))
const leave = fc.constant(toCommand<History>('leave', (one) => one.leave()))
const join = fc.constant(toCommand<History>('join', (one) => one.join()))
const commands = anyCommands<History>(
  [rotateOnce, rotateOnce, rotateAtOnce, breakOff, breakOff, breakOff, leave, join],
  10,
)

/** Starts its edges itself; those that are left at the end are closed with the rig. */
export async function runRotation(
  options: MachineOptions,
  rig: ConsoleRig,
): Promise<MachineReport> {
  const edges = await Promise.all([rig.startEdge(), rig.startEdge()])
  return runMachine(options, commands, async (note, steps) => {
    await runCommands(await createHistory(rig, edges, note), steps)
  })
}
