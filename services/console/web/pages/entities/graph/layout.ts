/** Places the nodes of a graph by d3-force; loaded when a graph is shown. */
import {
  forceCollide,
  forceLink,
  forceManyBody,
  forceSimulation,
  forceX,
  forceY,
  type SimulationNodeDatum,
} from 'd3-force'
import type { Graph, Place } from './nodes.ts'

const sliceMs = 8

/**
 * Computes in slices between which the page answers. The same graph gets the same places.
 * @returns places from 0 to 1 for each node; null when it was given up
 */
export async function layOut(graph: Graph, signal: AbortSignal): Promise<Place[] | null> {
  const nodes: SimulationNodeDatum[] = graph.nodes.map(() => ({}))
  const lines = graph.lines.map(({ from, to }) => ({ source: from, target: to }))
  const simulation = forceSimulation(nodes)
    .force('lines', forceLink(lines).distance(42))
    .force('apart', forceManyBody().strength(-90))
    .force('size', forceCollide(11))
    // Nothing drifts away, and the graph is wider than it is high.
    .force('x', forceX().strength(0.05))
    .force('y', forceY().strength(0.11))
    .stop()
  while (simulation.alpha() > simulation.alphaMin()) {
    const untilMs = performance.now() + sliceMs
    while (simulation.alpha() > simulation.alphaMin() && performance.now() < untilMs) {
      simulation.tick()
    }
    await new Promise((resolve) => setTimeout(resolve))
    if (signal.aborted) return null
  }
  return toUnit(nodes.map(({ x = 0, y = 0 }) => ({ x, y })))
}

function toUnit(places: readonly Place[]): Place[] {
  const span = (values: number[]) => {
    const least = Math.min(...values)
    const size = Math.max(...values) - least
    return (value: number) => (size === 0 ? 0.5 : (value - least) / size)
  }
  const toX = span(places.map(({ x }) => x))
  const toY = span(places.map(({ y }) => y))
  return places.map(({ x, y }) => ({ x: toX(x), y: toY(y) }))
}
