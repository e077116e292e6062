/** What a graph of links shows: a bounded number of nodes, and the lines between them. */

import { totalOf, toVerdictText, type Verdicts } from '../verdicts.ts'

export type GraphSubject = { kind: 'device' | 'user'; id: string }
type Linked = { id: string; shared: { id: string }[]; sessions: number }

export type GraphNode = {
  kind: 'device' | 'user'
  id: string
  role: 'subject' | 'shared' | 'linked'
  /** Nodes that it has a line to. */
  lines: number
  /** What is known of its alerts; undefined without any. */
  alerts?: NodeAlerts | undefined
}
/** Of the newest alerts of a node, with the highest risk score of these. */
export type NodeAlerts = Verdicts & { kind: 'device' | 'user'; id: string; risk_score: number }

/** What people said of a node: a confirmed alert counts more than a later false one. */
export type NodeVerdict = 'confirmed' | 'open' | 'cleared' | 'none'

export function toVerdict(alerts: NodeAlerts | undefined): NodeVerdict {
  if (alerts === undefined || totalOf(alerts) === 0) return 'none'
  if (alerts.confirmed > 0) return 'confirmed'
  return alerts.open > 0 ? 'open' : 'cleared'
}

/** `risk 82, 31 alerts, 24 confirmed`. */
export const toAlertsText = (alerts: NodeAlerts | undefined): string =>
  alerts === undefined ? 'no alerts' : `risk ${alerts.risk_score}, ${toVerdictText(alerts)}`
/** Indexes of nodes; `sessions` in common where that is what links them. */
export type GraphLine = { from: number; to: number; sessions: number }
export type Graph = { nodes: GraphNode[]; lines: GraphLine[]; linkedShown: number }

/** Nodes of a graph, the subject included: more are not legible. */
export const graphNodesMax = 200

/** Takes linked ones in their order, each with what it shares, while there is room. */
export function toGraph(
  subject: GraphSubject,
  linked: readonly Linked[],
  alerts: readonly NodeAlerts[] = [],
  nodesMax = graphNodesMax,
): Graph {
  const known = new Map(alerts.map((one) => [`${one.kind} ${one.id}`, one]))
  const sharedKind = subject.kind === 'device' ? 'user' : 'device'
  const nodes: GraphNode[] = []
  const lines: GraphLine[] = []
  const sharedAt = new Map<string, number>()
  const add = (node: Pick<GraphNode, 'kind' | 'id' | 'role'>) =>
    nodes.push({ ...node, lines: 0, alerts: known.get(`${node.kind} ${node.id}`) }) - 1
  add({ ...subject, role: 'subject' })
  const join = (from: number, to: number, sessions = 0) => {
    lines.push({ from, to, sessions })
    nodes[from]!.lines += 1
    nodes[to]!.lines += 1
  }
  let linkedShown = 0
  for (const { id, shared, sessions } of linked) {
    let room = nodesMax - nodes.length - 1
    if (room < 0) break
    const taken = shared.filter((one) => sharedAt.has(one.id) || room-- > 0)
    if (taken.length === 0 && sessions === 0) continue
    const at = add({ kind: subject.kind, id, role: 'linked' })
    linkedShown += 1
    for (const one of taken) {
      let via = sharedAt.get(one.id)
      if (via === undefined) {
        via = add({ kind: sharedKind, id: one.id, role: 'shared' })
        sharedAt.set(one.id, via)
        join(0, via)
      }
      join(via, at)
    }
    if (sessions > 0) join(0, at, sessions)
  }
  return { nodes, lines, linkedShown }
}

export type Place = { x: number; y: number }

const directions = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }

/**
 * The node that an arrow key leads to: the nearest in its direction.
 * @returns null for another key, and where there is none
 */
export function findNext(places: readonly Place[], from: number, key: string): number | null {
  const direction = directions[key as keyof typeof directions]
  const here = places[from]
  if (direction === undefined || here === undefined) return null
  const [dx, dy] = direction as [number, number]
  let next: number | null = null
  let least = Number.POSITIVE_INFINITY
  places.forEach(({ x, y }, at) => {
    const ahead = (x - here.x) * dx + (y - here.y) * dy
    const aside = Math.abs((x - here.x) * dy) + Math.abs((y - here.y) * dx)
    if (at === from || ahead <= 0) return
    // What lies aside counts more, so that the keys go where they point.
    const cost = ahead + 2 * aside
    if (cost < least) {
      least = cost
      next = at
    }
  })
  return next
}
