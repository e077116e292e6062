/**
 * Faults of a cluster of three: the leader of the telemetry stream, or a follower, is killed or cut
 * off, or two servers are killed so that there is no majority. A fault ends when every server is
 * current again and every edge accepts telemetry.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { telemetryStream } from '#shared/core/telemetry/nats-names.ts'
import { until } from '../../support/process/until.ts'
import type { ClusterNode } from '../../support/servers/nats/nats-cluster.ts'
import type { ClusterRig } from './rig.ts'

export const clusterFaults = [
  'leader killed',
  'follower cut off',
  'leader cut off',
  'follower killed',
  'two killed',
] as const
export type ClusterFault = (typeof clusterFaults)[number]

export type InjectedFault = {
  fault: ClusterFault
  begunMs: number
  /** When the server was started or connected again. */
  revertedMs: number
  /** When the fault had ended. */
  endedMs: number
  leaderBefore: string
  leaderAfter: string
  /** Edges connected to a server that was killed or cut off. */
  edgesOnIt: number
}

const nowMs = () => performance.now()
const recoveryLimitMs = 90_000

/** Injects one fault for `lastsMs` and waits until it has ended. */
export async function injectFault(
  rig: ClusterRig,
  fault: ClusterFault,
  lastsMs: number,
  random: () => number,
): Promise<InjectedFault> {
  const { nodes } = rig.cluster
  const leader = await findLeader(nodes)
  const followers = nodes.filter((node) => node !== leader)
  const follower = followers[Math.floor(random() * followers.length)]!
  const targets =
    fault === 'two killed' ? [leader, follower] : [/leader/.test(fault) ? leader : follower]
  const clients = (await Promise.all(targets.map((node) => node.listClients()))).flat()
  const begunMs = nowMs()
  const killed = /killed/.test(fault)
  await Promise.all(targets.map((node) => (killed ? node.kill() : node.cut())))
  await pause(lastsMs)
  const revertedMs = nowMs()
  await Promise.all(targets.map((node) => (killed ? node.start() : node.mend())))
  await rig.cluster.settled(recoveryLimitMs)
  await until(`the edges accept telemetry after "${fault}"`, rig.areEdgesReady, recoveryLimitMs)
  const endedMs = nowMs()
  return {
    fault,
    begunMs,
    revertedMs,
    endedMs,
    leaderBefore: leader.name,
    leaderAfter: (await findLeader(nodes)).name,
    edgesOnIt: clients.filter((name) => name === 'ingest').length,
  }
}

/** The server that a majority names as the leader of the telemetry stream. */
async function findLeader(nodes: readonly ClusterNode[]): Promise<ClusterNode> {
  let found: ClusterNode | undefined
  await until(
    'the telemetry stream has a leader',
    async () => {
      const names = await Promise.all(nodes.map((node) => node.findLeader(telemetryStream)))
      found = nodes.find(({ name }) => names.filter((one) => one === name).length >= 2)
      return found !== undefined
    },
    recoveryLimitMs,
  )
  return found!
}
