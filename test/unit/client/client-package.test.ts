/** The package `device-intelligence/client`: it imports only the core and Node, and it works. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { describe, expect, expectTypeOf, it } from 'vitest'
import type { Alert, CategorySignals, Signals } from '../../../shared/client/client.ts'

const root = resolve(import.meta.dirname, '../../..')

/** Every module that the client loads, as paths from the root; package names unchanged. */
function loadedBy(path: string, found = new Set<string>()): Set<string> {
  if (found.has(path)) return found
  found.add(path)
  if (!path.endsWith('.ts')) return found
  const text = readFileSync(join(root, path), 'utf8')
  const imports = text.matchAll(/^(?:import|export)\s(?!type )[^'"]*?from '([^']+)'/gms)
  for (const [, name] of imports) {
    if (name!.startsWith('#shared/')) loadedBy(name!.replace('#shared/', 'shared/'), found)
    else if (name!.startsWith('.')) {
      loadedBy(relative(root, resolve(root, dirname(path), name!)), found)
    } else found.add(name!)
  }
  return found
}

describe('the client package', () => {
  it('loads no package and no I/O of the service', () => {
    const loaded = [...loadedBy('shared/client/client.ts')]
    expect(loaded.length).toBeGreaterThan(5)
    const foreign = loaded.filter((name) => !/^(node:|shared\/(client|core)\/)/.test(name))
    expect(foreign).toEqual([])
  })

  it('loads nothing of Node in its entry for WebCrypto', () => {
    const loaded = [...loadedBy('shared/client/webcrypto.ts')]
    expect(loaded).toContain('shared/client/webhook-check.ts')
    expect(loaded.filter((name) => !/^shared\/(client|core)\//.test(name))).toEqual([])
  })

  it('can be imported by its name', () => {
    const code = `
      import { signBody, verifyWebhook } from 'device-intelligence/client'
      process.stdout.write(signBody('what do ya want for nothing?', 'Jefe'))
      process.stdout.write(' ' + typeof verifyWebhook)`
    const out = execFileSync(process.execPath, ['--input-type=module', '--eval', code], {
      cwd: root,
      encoding: 'utf8',
    })
    expect(out).toBe('W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM= function')
  })

  it('types every signal of the catalog by its value', () => {
    expectTypeOf<CategorySignals<'root'>['su_binary']>().toEqualTypeOf<boolean | null | undefined>()
    expectTypeOf<CategorySignals<'tamper'>['pi_device_verdict']>().toEqualTypeOf<
      string[] | null | undefined
    >()
    expectTypeOf<'su_binary'>().toExtend<keyof CategorySignals<'root'>>()
    expectTypeOf<'su_binay'>().not.toExtend<keyof CategorySignals<'root'>>()
    expectTypeOf<{ root: { su_binary: 'yes' } }>().not.toExtend<Pick<Signals, 'root'>>()
    expectTypeOf<Alert['decision']['action']>().toEqualTypeOf<'REVIEW' | 'BLOCK'>()
  })
})
