/** What a suppression can be of, as its fields offer it: signals, flags, versions, platforms. Pure. */
import { findFlag } from '#shared/core/alerts/alert-sentence.ts'
import type { FindChoice } from '../../../components/find/find-choices.ts'

type Signal = { signal: string; description: string; flag: string }
type Categories = readonly { category: string; signals: readonly Signal[] }[]
type Versions = readonly { platform: string; sdk_version: string; devices: number }[]

/** No path of a signal begins so: a choice of a flag is one of all its signals. */
const flagPrefix = 'flag '

/** Whole categories, then flags by name, then signals by what they say. */
export function toSignalChoices(categories: Categories): FindChoice[] {
  const signals = categories.flatMap((one) => one.signals)
  const flags = [...new Set(signals.map(({ flag }) => flag))]
  return [
    ...categories.map(({ category }) => ({
      value: `${category}.*`,
      text: `Everything of ${category.replaceAll('_', ' ')}`,
      code: `${category}.*`,
    })),
    ...flags
      .map((flag) => ({
        value: flagPrefix + flag,
        text: findFlag(flag)?.name ?? flag,
        code: `${flag}: its ${signals.filter((one) => one.flag === flag).length} signals`,
      }))
      .toSorted((a, b) => a.text.localeCompare(b.text)),
    ...signals.map(({ signal, description }) => ({
      value: signal,
      text: description,
      code: signal,
    })),
  ]
}

/**
 * The paths once a choice was switched on or off; a flag stands for its signals.
 * @param choice of `toSignalChoices`
 */
export function toggleSignals(
  paths: readonly string[],
  choice: string,
  categories: Categories,
): string[] {
  const flag = choice.startsWith(flagPrefix) ? choice.slice(flagPrefix.length) : null
  const meant =
    flag === null
      ? [choice]
      : categories.flatMap(({ signals }) =>
          signals.filter((one) => one.flag === flag).map(({ signal }) => signal),
        )
  const others = paths.filter((path) => !meant.includes(path))
  const isOn = meant.every((path) => paths.includes(path))
  return isOn ? others : [...others, ...meant]
}

/** Versions that the fleet has sent, most devices first; `4.3.*` where several begin so. */
export function toVersionChoices(versions: Versions): FindChoice[] {
  const devices = new Map<string, number>()
  for (const { sdk_version: version, devices: count } of versions) {
    if (version !== '') devices.set(version, (devices.get(version) ?? 0) + count)
  }
  const beginnings = new Map<string, number>()
  for (const version of devices.keys()) {
    const at = version.lastIndexOf('.')
    if (at <= 0) continue
    const beginning = version.slice(0, at + 1)
    beginnings.set(beginning, (beginnings.get(beginning) ?? 0) + 1)
  }
  return [
    ...[...devices]
      .toSorted(([, a], [, b]) => b - a)
      .map(([version, count]) => ({ value: version, text: version, count })),
    ...[...beginnings]
      .filter(([, count]) => count > 1)
      .map(([beginning]) => ({
        value: `${beginning}*`,
        text: `${beginning}*`,
        code: `all that begin with ${beginning}`,
      })),
  ]
}

/** Platforms that the fleet has, and the two that SDKs are for. */
export const toPlatformChoices = (versions: Versions): FindChoice[] =>
  [...new Set(['android', 'ios', ...versions.map(({ platform }) => platform)])]
    .filter((platform) => platform !== '')
    .map((platform) => ({ value: platform, text: platform }))

const typedCharactersMax = 64

/** What is typed and not offered, such as a version that is not out yet. */
export const toTypedChoice = (text: string): FindChoice | null =>
  text.length > typedCharactersMax || /[\s,]/.test(text)
    ? null
    : { value: text, text, code: 'as typed; not seen in the last 7 days' }
