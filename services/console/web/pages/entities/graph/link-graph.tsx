/**
 * Links as a graph: circles are devices, squares are users. It is one stop of the tab key, in which
 * the arrow keys move; the list beside it has the same as text.
 */
import { Link } from '@tanstack/react-router'
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from 'react'
import { toVisible } from '#shared/core/base/visible-text.ts'
import { classes } from '../../../components/classes.ts'
import { cutMiddle } from '../../../components/id.tsx'
import { Skeleton } from '../../../components/states.tsx'
import { counted } from '../../../components/words.ts'
import { entityLink } from '../entity-link.ts'
import {
  findNext,
  type Graph,
  type GraphNode,
  type GraphSubject,
  type NodeAlerts,
  type NodeVerdict,
  type Place,
  toAlertsText,
  toGraph,
  toVerdict,
} from './nodes.ts'

type Linked = { id: string; shared: { id: string }[]; shared_total: number; sessions: number }

const heightPx = 420
const marginPx = { x: 24, y: 22 }
/** Nodes with most lines that have their name beside them. */
const namedMost = 6

export function LinkGraph({
  tenant,
  subject,
  linked,
  alerts,
  total,
}: {
  tenant: string
  subject: GraphSubject
  linked: Linked[]
  /** Of those that have any. */
  alerts: readonly NodeAlerts[]
  /** How many are linked in all. */
  total: number
}) {
  const { kind, id } = subject
  const graph = useMemo(() => toGraph({ kind, id }, linked, alerts), [kind, id, linked, alerts])
  const places = usePlaces(graph)
  const shared = graph.nodes.filter(({ role }) => role === 'shared').length
  const left = total - graph.linkedShown
  return (
    <figure className="grid grid-cols-[minmax(0,1fr)] gap-2">
      {places === null ? (
        <div aria-busy="true" aria-label="Loading" role="status" style={{ height: heightPx }}>
          <Skeleton className="h-full" />
        </div>
      ) : (
        <Drawing graph={graph} places={places} tenant={tenant} />
      )}
      <figcaption className="text-muted text-sm">
        {counted(graph.linkedShown, `linked ${kind}`)} and{' '}
        {counted(shared, kind === 'device' ? 'user' : 'device')} in common
        {left > 0 ? `; ${counted(left, `linked ${kind}`)} left out` : ''}. Circles are devices,
        squares are users, dashed lines are sessions in common. Beside a node stands its highest
        risk score; ! is a confirmed alert, ? an open one, ok are alerts that were all cleared. The
        list has the same as text.
      </figcaption>
    </figure>
  )
}

/** Computes the places after the page is shown; null until then. */
function usePlaces(graph: Graph): Place[] | null {
  const [placed, setPlaced] = useState<{ graph: Graph; places: Place[] } | null>(null)
  useEffect(() => {
    const end = new AbortController()
    void import('./layout.ts')
      .then(({ layOut }) => layOut(graph, end.signal))
      .then((places) => {
        if (places !== null && !end.signal.aborted) setPlaced({ graph, places })
      })
    return () => end.abort()
  }, [graph])
  return placed?.graph === graph ? placed.places : null
}

function Drawing({ tenant, graph, places }: { tenant: string; graph: Graph; places: Place[] }) {
  const box = useRef<SVGSVGElement>(null)
  const [widthPx, setWidthPx] = useState(600)
  const [active, setActive] = useState(0)
  const [shown, setShown] = useState<number | null>(null)
  useEffect(() => {
    const element = box.current
    if (element === null) return
    const observer = new ResizeObserver(() => setWidthPx(element.clientWidth))
    observer.observe(element)
    return () => observer.disconnect()
  }, [])
  const at = places.map(({ x, y }) => ({
    x: marginPx.x + x * Math.max(0, widthPx - 2 * marginPx.x),
    y: marginPx.y + y * (heightPx - 2 * marginPx.y),
  }))
  const named = useMemo(() => findNamed(graph.nodes), [graph])
  const move = (event: KeyboardEvent) => {
    const next = event.key === 'Home' ? 0 : findNext(at, active, event.key)
    if (next === null) return
    event.preventDefault()
    setActive(next)
    box.current?.querySelectorAll<SVGAElement>('a')[next]?.focus()
  }
  const node = shown === null ? undefined : graph.nodes[shown]
  return (
    <>
      {/* biome-ignore lint/a11y/useSemanticElements: a drawing has no element for a group */}
      <svg
        aria-label="Graph of links; the arrow keys move in it"
        className="block w-full rounded-md border border-line bg-page"
        height={heightPx}
        onKeyDown={move}
        ref={box}
        role="group"
      >
        <g>
          {graph.lines.map(({ from, to, sessions }) => (
            <line
              className={classes(
                from === shown || to === shown ? 'stroke-accent' : 'stroke-line-strong',
              )}
              key={`${from} ${to} ${sessions}`}
              strokeDasharray={sessions > 0 ? '4 3' : undefined}
              strokeWidth={from === shown || to === shown ? 1.5 : 1}
              x1={at[from]!.x}
              x2={at[to]!.x}
              y1={at[from]!.y}
              y2={at[to]!.y}
            />
          ))}
        </g>
        {graph.nodes.map((one, index) => (
          <Link
            aria-label={toText(one)}
            className="outline-none [&:focus-visible_.ring]:stroke-accent"
            key={`${one.kind} ${one.id}`}
            onBlur={() => setShown(null)}
            onFocus={() => {
              setActive(index)
              setShown(index)
            }}
            onMouseEnter={() => setShown(index)}
            onMouseLeave={() => setShown(null)}
            tabIndex={index === active ? 0 : -1}
            {...entityLink(one.kind, tenant, one.id)}
          >
            <Mark node={one} place={at[index]!} />
          </Link>
        ))}
        {/* biome-ignore lint/a11y/noAriaHiddenOnFocusable: a group of an SVG takes no focus */}
        <g aria-hidden="true" className="pointer-events-none">
          {graph.nodes.map((one, index) =>
            index === shown || named.has(index) ? (
              <Name key={`${one.kind} ${one.id}`} node={one} place={at[index]!} width={widthPx} />
            ) : null,
          )}
        </g>
      </svg>
      <p aria-live="polite" className="min-h-5 break-words">
        {node === undefined ? (
          <span className="text-muted">Point at a node, or move with the arrow keys.</span>
        ) : (
          toText(node)
        )}
      </p>
    </>
  )
}

const roles = { subject: 'this page', shared: 'in common', linked: 'linked' }

const toText = ({ kind, id, role, lines, alerts }: GraphNode) =>
  `${kind === 'device' ? 'Device' : 'User'} ${toVisible(id)}, ${roles[role]}, ${toAlertsText(alerts)}, ${counted(lines, 'line')}`

/** The subject, and what most is linked through. */
function findNamed(nodes: readonly GraphNode[]): Set<number> {
  const shared = nodes
    .map(({ role, lines }, index) => ({ role, lines, index }))
    .filter(({ role }) => role === 'shared')
    .sort((a, b) => b.lines - a.lines)
  return new Set([0, ...shared.slice(0, namedMost).map(({ index }) => index)])
}

const looks = {
  subject: 'fill-accent stroke-accent',
  shared: 'fill-warn stroke-warn',
  linked: 'fill-raised stroke-accent-text',
}

/** A sign and a colour for what people said: the sign tells it without the colour. */
const signs: Record<Exclude<NodeVerdict, 'none'>, { sign: string; look: string }> = {
  confirmed: { sign: '!', look: 'fill-bad' },
  open: { sign: '?', look: 'fill-warn' },
  cleared: { sign: ' ok', look: 'fill-good' },
}

/** The risk of a node below it, with the sign of its verdict. */
function Risk({ node: { role, alerts }, place: { x, y } }: { node: GraphNode; place: Place }) {
  const verdict = toVerdict(alerts)
  if (alerts === undefined || verdict === 'none') return null
  const { sign, look } = signs[verdict]
  return (
    <text
      className={classes(look, 'stroke-page font-semibold text-[10px] [paint-order:stroke]')}
      strokeWidth={3}
      textAnchor="middle"
      x={x}
      y={y + (role === 'subject' ? 19 : 17)}
    >
      {alerts.risk_score}
      {sign}
    </text>
  )
}

function Mark({ node, place }: { node: GraphNode; place: Place }) {
  const { kind, role } = node
  const { x, y } = place
  const size = role === 'subject' ? 8 : 6
  const look = classes(looks[role], 'stroke-2')
  return (
    <>
      <circle className="ring fill-transparent stroke-2" cx={x} cy={y} r={size + 5} />
      {kind === 'device' ? (
        <circle className={look} cx={x} cy={y} r={size} />
      ) : (
        <rect
          className={look}
          height={2 * size}
          rx={1.5}
          width={2 * size}
          x={x - size}
          y={y - size}
        />
      )}
      <Risk node={node} place={place} />
    </>
  )
}

const nameCharacters = 22

function Name({ node, place: { x, y }, width }: { node: GraphNode; place: Place; width: number }) {
  const atEnd = x > width / 2
  return (
    <text
      className="fill-text stroke-page font-mono text-xs [paint-order:stroke]"
      strokeWidth={3}
      textAnchor={atEnd ? 'end' : 'start'}
      x={atEnd ? x - 13 : x + 13}
      y={y + 4}
    >
      {cutMiddle(toVisible(node.id), nameCharacters)}
    </text>
  )
}
