import { describe, expect, it } from 'vitest'
import { describeForeignAnswer, isOwnAnswer } from '../../../shared/core/http/foreign-answer.ts'

describe('an answer of the console', () => {
  it.each([
    [200, 'application/json; charset=utf-8', true],
    [403, 'application/problem+json; charset=utf-8', true],
    [200, 'Text/CSV', true],
    [204, null, true],
    [200, 'text/html', false],
    [403, 'text/html; charset=utf-8', false],
    [502, 'text/plain', false],
    [200, null, false],
  ])('%i with %j: %s', (status, type, own) => {
    expect(isOwnAnswer(status, type)).toBe(own)
  })
})

describe('an answer of something else', () => {
  const describeText = (text: string, contentType: string | null = 'text/html; charset=utf-8') =>
    describeForeignAnswer({ status: 403, contentType, text })

  it('is described by its status, type and first visible words', () => {
    const page =
      '<!doctype html><!-- secret --><html><head><title>Access denied</title>' +
      '<style>p { color: red }</style><script>go("x > y")</script></head>' +
      '<body onload="a()"><h1>You are\n blocked</h1><p>Ray 1'
    expect(describeText(page)).toContain(
      'HTTP 403, text/html; it says “Access denied You are blocked Ray 1”.',
    )
    expect(describeText('  ')).toContain('it was empty.')
    expect(describeText('upstream down', null)).toContain('without a type; it says “upstream down”')
    expect(describeText('a <b> c', 'text/plain')).toContain('“a <b> c”')
    expect(describeText('<script>never closed')).toContain('it was empty')
  })

  it('is named by the address that a redirect led to', () => {
    const redirectedTo = 'https://sso.example/login'
    const answer = { status: 200, contentType: 'text/html', redirectedTo, text: 'Log in' }
    expect(describeForeignAnswer(answer)).toContain(`HTTP 200 from ${redirectedTo}, text/html`)
  })

  it('is described quickly and briefly, whatever it is', () => {
    const begun = performance.now()
    for (const part of ['<', '<!--', '<script', '<script>', 'x', ' ', '<style></sty']) {
      expect(describeText(part.repeat(1_000_000)).length).toBeLessThan(400)
    }
    expect(performance.now() - begun).toBeLessThan(2_000)
  })
})
