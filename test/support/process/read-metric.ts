/** Metrics of a process, as text and over its internal listener. */

type Labels = Record<string, string>

/** The sum of a metric's series with these labels; 0 while it has none. */
export function sumOf(text: string, name: string, labels: Labels = {}): number {
  let sum = 0
  for (const line of text.split('\n')) {
    if (!line.startsWith(`${name}{`) && !line.startsWith(`${name} `)) continue
    const matches = Object.entries(labels).every(([key, value]) =>
      line.includes(`${key}="${value}"`),
    )
    if (matches) sum += Number(line.slice(line.lastIndexOf(' ') + 1))
  }
  return sum
}

/** @param url of the internal listener of a process */
export async function readMetric(url: string, name: string, labels: Labels = {}): Promise<number> {
  return sumOf(await (await fetch(`${url}/metrics`)).text(), name, labels)
}
