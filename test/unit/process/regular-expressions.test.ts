/**
 * Every regular expression of the service takes linear time, as `recheck` proves, or is listed with
 * the reason why it never matches foreign input.
 */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { readGenerated } from '../../generate/files.ts'
import {
  builtAtRunTime,
  harmless,
  judge,
  readExpressions,
  readRecord,
  recordPath,
} from '../../generate/linear-expressions.ts'
import { seed } from '../../support/process/seed.ts'

const { literals, builders } = readExpressions()
/** Recorded expressions that are judged again in each run, others with another seed. */
const judgedAgain = 3

it('the sources have regular expressions, and recheck detects a bad one', () => {
  expect(literals.size).toBeGreaterThan(50)
  const froze = String.raw`^(?:[A-Za-z][A-Za-z0-9-]*: ?[ -~]*\r\n)+\r\n$`
  expect(judge(froze, '').status).toBe('vulnerable')
})

it('every one is linear, or never matches foreign input', () => {
  const { linear } = readRecord(readGenerated(recordPath))
  const again = new Set(fc.sample(fc.constantFrom(...linear), { seed, numRuns: judgedAgain }))
  const recorded = new Set(linear.filter((literal) => !again.has(literal)))
  const found = [...literals]
    .filter(([literal]) => !(literal in harmless) && !recorded.has(literal))
    .map(([literal, { pattern, flags, path }]) => ({ literal, path, ...judge(pattern, flags) }))
    .filter(({ status }) => status !== 'safe')
  expect(found.map(({ literal, path, status }) => `${path}: ${literal} is ${status}`)).toEqual([])
})

it('none is built at run time from foreign text', () => {
  expect([...builders].sort()).toEqual(Object.keys(builtAtRunTime))
})

it('every expression listed as harmless exists', () => {
  expect(Object.keys(harmless).filter((literal) => !literals.has(literal))).toEqual([])
})
