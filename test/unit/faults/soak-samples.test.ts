// The soak's judge: it must see what grows, and leave what comes and goes alone.
import { describe, expect, it } from 'vitest'
import {
  judgeConnections,
  judgeFlatness,
  type Sample,
  toFlatness,
} from '../../faults/soak/soak-samples.ts'

const everyMs = 10_000
const hourMs = 3_600_000

/**
 * An hour of the API, killed every so often; what it holds by the age of the process and the run.
 */
function hourOf(
  lifeMs: number,
  held: (ageMs: number, atMs: number) => { megabytes: number; files: number },
): Sample[] {
  return Array.from({ length: hourMs / everyMs }, (_, n) => {
    const atMs = n * everyMs
    const pid = Math.floor(atMs / lifeMs)
    return { child: 'api', pid, atMs, connections: 9 + (n % 90), ...held(atMs % lifeMs, atMs) }
  })
}
const judge = (samples: Sample[]) => judgeFlatness(toFlatness(samples))

describe('what a process holds', () => {
  it('is flat when it warms up, and comes and goes', () => {
    const held = (ageMs: number) => ({
      megabytes: 100 + 40 * Math.min(1, ageMs / 300_000) + ((ageMs / everyMs) % 7),
      files: 30 + ((ageMs / everyMs) % 20),
    })
    expect(judge(hourOf(hourMs, held))).toEqual([])
    expect(judge(hourOf(360_000, held))).toEqual([])
  })

  it('is flat when bursts of open files get larger and go again', () => {
    const held = (ageMs: number) => ({
      megabytes: 100,
      files: 30 + Math.round(((ageMs / everyMs) % 6) * (1 + (20 * ageMs) / hourMs)),
    })
    expect(judge(hourOf(hourMs, held))).toEqual([])
    const leaking = (ageMs: number) => {
      const { megabytes, files } = held(ageMs)
      return { megabytes, files: files + Math.floor((20 * ageMs) / hourMs) }
    }
    expect(judge(hourOf(hourMs, leaking))).toEqual(['the open files of api grow by 20 an hour'])
  })

  it('grows when a long life does', () => {
    const held = (ageMs: number) => ({
      megabytes: 100 + (80 * ageMs) / hourMs,
      files: 30 + Math.floor((20 * ageMs) / hourMs),
    })
    expect(judge(hourOf(hourMs, held))).toEqual([
      'the memory of api grows by 80 MB an hour',
      'the open files of api grow by 20 an hour',
    ])
  })

  it('is flat when lives step up to what those early in the run needed, and grows beyond', () => {
    const lifeMs = 20 * 60_000
    const steps = (ageMs: number) => Math.floor(ageMs / 300_000) / 3
    const held = (top: number) => (ageMs: number, atMs: number) => ({
      megabytes: atMs < lifeMs ? 240 : 190 + (top - 190) * steps(ageMs),
      files: 30,
    })
    expect(judge(hourOf(lifeMs, held(240)))).toEqual([])
    expect(judge(hourOf(lifeMs, held(340)))).toContainEqual(
      expect.stringMatching('the memory of api grows by'),
    )
  })

  it('grows when each of many short lives holds more than those before', () => {
    const held = (_: number, atMs: number) => ({
      megabytes: 100 + (200 * atMs) / hourMs,
      files: 30,
    })
    expect(judge(hourOf(360_000, held))).toEqual(['api held 283 MB late in the run'])
  })

  it('holds no connection that nobody uses', () => {
    const samples = hourOf(360_000, () => ({ megabytes: 100, files: 30 }))
    const idle = (connections: number): Sample[] => [{ ...samples.at(-1)!, connections }]
    expect(judgeConnections(samples, idle(21))).toEqual([])
    expect(judgeConnections(samples, idle(22))).toEqual([
      'api holds 22 connections that nobody uses, and had 9 early',
    ])
  })
})
