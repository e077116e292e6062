// Choices that are found by typing, what a suppression offers, and which alerts a spike explains.
import { describe, expect, it } from 'vitest'
import { findChoices } from '../../../services/console/web/components/find/find-choices.ts'
import {
  toggleSignals,
  toPlatformChoices,
  toSignalChoices,
  toTypedChoice,
  toVersionChoices,
} from '../../../services/console/web/pages/policies/form/suppression-choices.ts'
import { isOfSpike } from '../../../services/console/web/pages/signals/is-of-spike.ts'

const signal = (path: string, flag: string) => ({ signal: path, description: `Of ${path}`, flag })
const categories = [
  {
    category: 'root',
    signals: [signal('root.su_binary', 'ROOTED'), signal('root.os', 'CUSTOM_OS')],
  },
  { category: 'debugger', signals: [signal('debugger.hook', 'ROOTED')] },
]

describe('a choice', () => {
  it('is found by its name, its code or its value, in any case', () => {
    const choices = toSignalChoices(categories)
    const find = (typed: string) => findChoices(choices, typed).map(({ value }) => value)
    expect(find(' ROOTED ')).toEqual(['flag ROOTED'])
    expect(find('custom system')).toEqual(['flag CUSTOM_OS'])
    expect(find('debugger')).toEqual(['debugger.*', 'debugger.hook'])
    expect(find('')).toHaveLength(choices.length)
  })

  it('of a flag switches all its signals on, and off once all of them are', () => {
    const some = toggleSignals(['root.os', 'debugger.hook'], 'flag ROOTED', categories)
    expect(some).toEqual(['root.os', 'root.su_binary', 'debugger.hook'])
    expect(toggleSignals(some, 'flag ROOTED', categories)).toEqual(['root.os'])
    expect(toggleSignals(['root.os'], 'root.*', categories)).toEqual(['root.os', 'root.*'])
    expect(toggleSignals(['root.os'], 'root.os', categories)).toEqual([])
  })
})

describe('the versions and platforms of a suppression', () => {
  const of = (platform: string, version: string, devices: number) => ({
    platform,
    sdk_version: version,
    devices,
  })
  const fleet = [of('android', '4.3.0', 5), of('ios', '4.3.1', 9), of('android', '4.3.1', 2)]

  it('are those that the fleet has sent, and what several versions begin with', () => {
    const choices = toVersionChoices([...fleet, of('tizen', '5', 1), of('ios', '', 7)])
    expect(choices.map(({ value, count }) => [value, count])).toEqual([
      ['4.3.1', 11],
      ['4.3.0', 5],
      ['5', 1],
      ['4.3.*', undefined],
    ])
    const platforms = toPlatformChoices([...fleet, of('tizen', '5', 1), of('', '6', 1)])
    expect(platforms.map(({ value }) => value)).toEqual(['android', 'ios', 'tizen'])
  })

  it('may be typed when the fleet has not sent them yet', () => {
    expect(toTypedChoice('4.4.*')).toMatchObject({ value: '4.4.*' })
    expect(toTypedChoice('4.4.0, 4.5.0')).toBeNull()
    expect(toTypedChoice('9'.repeat(65))).toBeNull()
  })
})

describe('a spike', () => {
  it('explains alerts of its signal, SDK version and platform', () => {
    const spike = { signal: 'root.su_binary', platform: 'Android', sdk_version: '4.3.0' }
    const alert = {
      platform: 'android',
      sdk_version: '4.3.0',
      reasons: [{ evidence: { metric: 'events' } }, { evidence: { signals: [spike.signal] } }],
    }
    expect(isOfSpike(alert, spike)).toBe(true)
    expect(isOfSpike({ ...alert, sdk_version: '4.3.1' }, spike)).toBe(false)
    expect(isOfSpike({ ...alert, platform: 'ios' }, spike)).toBe(false)
    expect(isOfSpike({ ...alert, reasons: alert.reasons.slice(0, 1) }, spike)).toBe(false)
    expect(isOfSpike({ reasons: alert.reasons }, spike)).toBe(false)
  })
})
