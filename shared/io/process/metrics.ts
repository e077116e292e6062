/**
 * Prometheus metrics of one process: its registry, Node's default metrics, and short constructors,
 * so that every metric is declared where it is used. Label values are from closed sets, tenant
 * slugs or a bounded number of client values.
 */
import {
  AggregatorRegistry,
  Counter,
  collectDefaultMetrics,
  Gauge,
  Histogram,
  type LabelValues,
  Registry,
} from 'prom-client'
import packageFile from '../../../package.json' with { type: 'json' }

export type Metrics = {
  registry: Registry
  /** `collect` runs at every scrape: for counts that a hot path keeps in plain numbers. */
  counter: <L extends string = never>(
    name: string,
    help: string,
    labels?: L[],
    collect?: (this: Counter<L>) => void,
  ) => Counter<L>
  gauge: <L extends string = never>(
    name: string,
    help: string,
    options?: { labels?: L[]; collect?: (this: Gauge<L>) => void | Promise<void> },
  ) => Gauge<L>
  histogram: <L extends string = never>(
    name: string,
    help: string,
    options: { buckets: number[]; labels?: L[] },
  ) => Histogram<L>
}

/** Latency buckets in seconds, 1 ms to 30 s. */
export const latencyBucketsSeconds = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 30,
]

/**
 * Metrics for one process, or for another thread of it, which leaves out Node's default metrics.
 * Names begin with `di_`.
 */
export function createMetrics(service: string, { isThread = false } = {}): Metrics {
  const registry = new Registry()
  registry.setDefaultLabels({ service })
  const registers = [registry]
  if (!isThread) {
    collectDefaultMetrics({ register: registry })
    new Gauge({
      name: 'di_build_info',
      help: 'Always 1; the label is the version of the running code',
      labelNames: ['version'],
      registers,
    }).set({ version: packageFile.version }, 1)
  }
  return {
    registry,
    counter: (name, help, labelNames = [], collect) =>
      new Counter({
        name,
        help,
        labelNames,
        registers,
        ...(collect === undefined ? {} : { collect }),
      }),
    gauge: (name, help, { labels: labelNames = [], collect } = {}) =>
      new Gauge({
        name,
        help,
        labelNames,
        registers,
        ...(collect === undefined ? {} : { collect }),
      }),
    histogram: (name, help, { buckets, labels: labelNames = [] }) =>
      new Histogram({ name, help, labelNames, buckets, registers }),
  }
}

/**
 * Shows each series of a counter at 0 before its first event. Prometheus does not see an event that
 * begins a series.
 */
export function startAtZero<L extends string>(
  counter: Counter<L>,
  series: readonly LabelValues<L>[],
): void {
  for (const labels of series) counter.inc(labels, 0)
}

/** What `/metrics` shows. */
export type MetricsPage = Pick<Registry, 'contentType' | 'metrics'>

/** The values of a registry, as they are sent from one thread to another. */
export type MetricValues = Awaited<ReturnType<Registry['getMetricsAsJSON']>>

/**
 * Shows the metrics of a process together with those of its thread. Values of the same name and
 * labels are added.
 * @param readThread the thread's values; none when it does not answer
 */
export function joinMetrics(
  registry: Registry,
  readThread: () => Promise<MetricValues>,
): MetricsPage {
  return {
    contentType: registry.contentType,
    metrics: async () => {
      const ofThread = await readThread()
      const both = [await registry.getMetricsAsJSON(), ofThread]
      const added = both.map((values) => values.map((one) => ({ ...one, aggregator: 'sum' })))
      return await AggregatorRegistry.aggregate(added).metrics()
    },
  }
}
