/**
 * Wrong bodies with a valid signature, as any owner of a tenant's secret can send them: every kind
 * of fault at every JSON path of a valid submission.
 */
import {
  type HostileCase,
  type Signer,
  toSigned,
  validBody,
} from '../../support/telemetry/raw-submissions.ts'

type Member = { path: string; key: string | null; value: unknown }

/** One change of a valid body, at one path. */
type Edit = {
  path: string
  /** JSON text in place of the value. */
  value?: string
  /** JSON text in place of the key. */
  key?: string
  /** JSON text of members before this one. */
  before?: string
  /** JSON text of members at the end of this object. */
  append?: string
  /** Leaves the member out. */
  drop?: boolean
}

/** Marks the position of raw bytes that are not text. */
const mark = '@@'

/** Every path of a value, the whole first. */
function walk(value: unknown, path = '$', key: string | null = null): Member[] {
  const members: Member[] = [{ path, key, value }]
  if (Array.isArray(value)) {
    for (const [at, item] of value.entries()) members.push(...walk(item, `${path}[${at}]`))
  } else if (typeof value === 'object' && value !== null) {
    for (const [name, item] of Object.entries(value)) {
      members.push(...walk(item, `${path}.${name}`, name))
    }
  }
  return members
}

/** Writes a value as JSON with one edit. */
function write(value: unknown, edit: Edit, path = '$'): string {
  if (edit.path === path && edit.value !== undefined) return edit.value
  if (Array.isArray(value)) {
    return `[${value.map((item, at) => write(item, edit, `${path}[${at}]`)).join()}]`
  }
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const texts: string[] = []
  for (const [name, item] of Object.entries(value)) {
    const own = `${path}.${name}`
    const isHere = own === edit.path
    if (isHere && edit.before !== undefined) texts.push(edit.before)
    if (isHere && edit.drop) continue
    const key = isHere ? (edit.key ?? JSON.stringify(name)) : JSON.stringify(name)
    texts.push(`${key}:${write(item, edit, own)}`)
  }
  if (edit.path === path && edit.append !== undefined) texts.push(edit.append)
  return `{${texts.join()}}`
}

const typeOf = (value: unknown) =>
  value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value

/** The first character of a key as an escape. */
const escaped = (key: string) =>
  `"\\u${key.charCodeAt(0).toString(16).padStart(4, '0')}${key.slice(1)}"`

/** An unreadable or another tenant cannot be authenticated. */
const isTenant = (path: string) => path === '$.tenant_id'
/** `null` and an empty text count as absent. */
const canBeAbsent = (path: string) => /^\$\.(user_id|account_id|sdk_meta\.batch_type)$/.test(path)
/** A client's time and what it computed are never a reason for a refusal. */
const isAdvice = (path: string) => path === '$.occurred_at' || path.startsWith('$.scorer.')
const expectedOf = (path: string) => (isTenant(path) ? [401] : [400])

type Add = (family: string, name: string, body: Buffer | string, at?: Partial<HostileCase>) => void

/** @param globex another tenant whose secret is also known */
export function makeBodyCases(acme: Signer, globex: Signer): HostileCase[] {
  const cases: HostileCase[] = []
  const add: Add = (family, name, body, at = {}) =>
    cases.push({ family, name, request: toSigned(body, acme), expected: [400], ...at })
  const members = walk(validBody(acme.tenantId))
  const edited = (edit: Edit) => write(validBody(acme.tenantId), edit)
  addWrongTypes(members, edited, add)
  addKeys(members, edited, add)
  addTexts(members, edited, add)
  addNumbers(members, edited, add)
  addOtherTenants(acme, globex, cases)
  addShapes(acme, edited, add)
  return cases
}

/** JSON texts of every type. */
const texts = {
  null: ['null'],
  boolean: ['true', 'false'],
  number: ['0', '-1', '1.5'],
  string: ['""', '"x"', '"1"', '"true"', '"null"', '"[object Object]"'],
  array: ['[]', '[null]', '["x"]', '[[]]', '[{}]'],
  object: ['{}', '{"a":1}', '{"length":1}', '{"0":"x"}', '{"toString":1}'],
}

function addWrongTypes(members: Member[], edited: (edit: Edit) => string, add: Add): void {
  for (const { path, key, value } of members) {
    for (const [type, values] of Object.entries(texts)) {
      if (type === typeOf(value)) continue
      // Every signal can be null: the device could not read it.
      const isSignal = /^\$\.signals\.\w+\.\w+$/.test(path)
      if (isSignal && (type === 'null' || value === null)) continue
      if (isAdvice(path)) continue
      if (canBeAbsent(path) && type === 'null') continue
      for (const text of values) {
        const authentic = path !== '$' && !isTenant(path)
        add('a wrong type', `${path} = ${text}`, edited({ path, value: text }), {
          expected: authentic ? [400] : [401],
          ...(authentic ? { path } : {}),
        })
      }
    }
    const isOptional = isAdvice(path) || canBeAbsent(path) || /signals\.\w+\./.test(path)
    if (key !== null && !isOptional) {
      add('a member left out', path, edited({ path, drop: true }), { expected: expectedOf(path) })
    }
  }
}

function addKeys(members: Member[], edited: (edit: Edit) => string, add: Add): void {
  for (const { path, key, value } of members) {
    const same = JSON.stringify(value)
    if (key !== null) {
      const spellings = { plain: JSON.stringify(key), escaped: escaped(key) }
      for (const [name, spelling] of Object.entries(spellings)) {
        for (const other of isTenant(path) ? [same] : [same, 'null']) {
          const before = `${spelling}:${other}`
          const [first, last] = [
            edited({ path, before }),
            edited({ path, before: `"${key}":${same}`, key: spelling, value: other }),
          ]
          add('a key twice', `${path}, ${name} first, ${other}`, first)
          add('a key twice', `${path}, ${name} last, ${other}`, last)
        }
      }
    }
    if (typeOf(value) !== 'object') continue
    for (const name of ['__proto__', 'constructor', 'prototype']) {
      for (const spelling of [`"${name}"`, escaped(name)]) {
        for (const under of ['{"tenant_id":"globex"}', 'null', '1', '[]']) {
          const append = `${spelling}:${under}`
          add('a forbidden key', `${path} ${append}`, edited({ path, append }))
        }
      }
    }
    for (const append of ['"a","a"', '"a"', '1', 'a:1', "'a':1", '"a":', ',', '1:1', '"a" 1']) {
      add('a broken key', `${path} ${append}`, edited({ path, append }))
    }
    add('a key twice', `${path}, of its own`, edited({ path, append: '"a":1,"\\u0061":1' }))
  }
}

/**
 * Byte sequences that are not UTF-8, in hexadecimal: cut, overlong, surrogates, beyond U+10FFFF.
 */
const notUtf8 = ['ff', 'fe', 'c0af', 'eda080', 'f8888080', '80', 'e28228', 'f4908080', 'c3', 'f0']
const surrogates = ['\\ud800', '\\udc00', '\\udc00\\ud800', '\\uD83D', 'x\\uDE00x']
const idPath = /_id$/

function addTexts(members: Member[], edited: (edit: Edit) => string, add: Add): void {
  const bytesAt = (text: string, hex: string) => {
    const [before, after] = text.split(mark) as [string, string]
    return Buffer.concat([Buffer.from(before), Buffer.from(hex, 'hex'), Buffer.from(after)])
  }
  for (const { path, key, value } of members) {
    if (typeof value === 'string') {
      for (const hex of notUtf8) {
        const text = edited({ path, value: `"x${mark}"` })
        add('not UTF-8', `${path} ${hex}`, bytesAt(text, hex), { expected: expectedOf(path) })
      }
      for (const text of surrogates) {
        const body = edited({ path, value: `"${text}"` })
        add('a lone surrogate', `${path} ${text}`, body, { expected: expectedOf(path) })
      }
      for (const raw of ['\0', '\n', '\x1f', '\\x41', '\\u00', '\\u{41}', '\\']) {
        const body = edited({ path, value: `"a${raw}"` })
        const expected = expectedOf(path)
        add('a broken string', `${path} ${JSON.stringify(raw)}`, body, { expected })
      }
      if (!idPath.test(path)) continue
      for (const text of ['\\u0000', '\\n', '\\u007f', 'a'.repeat(257), '']) {
        if (text === '' && canBeAbsent(path)) continue
        const body = edited({ path, value: `"${text}"` })
        add('an id that is none', `${path} ${text.slice(0, 6)}`, body, {
          expected: expectedOf(path),
        })
      }
    }
    if (key === null) continue
    // Without a readable tenant_id key a submission has no tenant.
    for (const hex of notUtf8) {
      const text = edited({ path, key: `"${key}${mark}"` })
      add('not UTF-8', `the key ${path} ${hex}`, bytesAt(text, hex), { expected: expectedOf(path) })
    }
    for (const text of surrogates) {
      const body = edited({ path, before: `"${text}":1` })
      add('a lone surrogate', `a key before ${path} ${text}`, body)
    }
  }
}

/** JSON numbers that a double cannot hold. */
const hugeNumbers = ['1e400', '-1e400', '1e309', '9007199254740993', '-9007199254740993']
const longNumbers = [
  '9'.repeat(30),
  '9'.repeat(400),
  `1${'0'.repeat(50_000)}`,
  `1e${'9'.repeat(99)}`,
]
/** Texts that some parsers accept as numbers. */
const noNumbers = ['NaN', 'Infinity', '-Infinity', '01', '+1', '.5', '1.', '0x10', '1e', '1_0', '-']

function addNumbers(members: Member[], edited: (edit: Edit) => string, add: Add): void {
  const places = members.filter(({ value }) => typeof value === 'number')
  const known = places.filter(({ path }) => path.startsWith('$.signals.'))
  const extra = (value: string) => edited({ path: '$', append: `"extra":{"n":[${value}]}` })
  for (const text of [...hugeNumbers, ...longNumbers]) {
    for (const { path } of known) {
      const body = edited({ path, value: text })
      add('a number that is lost', `${path} = ${text.slice(0, 20)}`, body, { path })
    }
  }
  for (const text of noNumbers) {
    for (const { path } of places) {
      add('no number', `${path} = ${text}`, edited({ path, value: text }))
    }
    add('no number', `$.extra = ${text}`, extra(text))
  }
}

/** Bodies with two tenants, or with one that some parsers may read as another. */
function addOtherTenants(acme: Signer, globex: Signer, cases: HostileCase[]): void {
  const [a, g] = [acme.tenantId, globex.tenantId]
  const path = '$.tenant_id'
  const of = (edit: Edit) => write(validBody(a), edit)
  const bodies: Record<string, string> = {}
  for (const spelling of ['"tenant_id"', escaped('tenant_id'), '"tenant\\u005fid"']) {
    bodies[`${spelling} other first`] = of({ path, before: `${spelling}:"${g}"` })
    bodies[`${spelling} own first`] = of({ path: '$', append: `${spelling}:"${g}"` })
    bodies[`${spelling} own escaped`] = of({
      path,
      before: `"tenant_id":"${g}"`,
      key: spelling,
    })
  }
  bodies['own nested first'] = of({ path, before: `"x":{"tenant_id":"${a}"}`, value: `"${g}"` })
  bodies['in an array'] = `[${of({ path: '-' })}]`
  for (const [name, body] of Object.entries(bodies)) {
    // The first tenant at the top level must be the signer; then the second one is a fault.
    const verified = /own first$/.test(name) ? acme : /^"/.test(name) ? globex : null
    for (const signer of name.startsWith('own nested') ? [acme] : [acme, globex]) {
      const request = toSigned(body, signer)
      cases.push({
        family: 'two tenants',
        name: `${name}, signed by ${signer.tenantId}`,
        request,
        expected: signer === verified ? [400] : [401],
      })
    }
  }
  const spellings = [a.toUpperCase(), ` ${a}`, `${a} `, `${a}\\u0000`, `\\u0430${a.slice(1)}`]
  for (const text of [...spellings, `${a}\\n`, `${a}/`, `../${a}`, '*', '', 'a'.repeat(64), '>']) {
    const request = toSigned(of({ path, value: `"${text}"` }), acme)
    const name = JSON.stringify(text).slice(0, 20)
    cases.push({ family: 'a tenant of nearly this name', name, request, expected: [401] })
  }
  for (const text of [`"${a}"`, `{"id":"${a}"}`, `["${a}"]`]) {
    const value = text === `"${a}"` ? `"${g}"` : text
    const request = toSigned(of({ path, value }), acme)
    cases.push({ family: 'two tenants', name: `tenant_id = ${value}`, request, expected: [401] })
  }
}

const nest = (levels: number, open = '[', close = ']') => open.repeat(levels) + close.repeat(levels)

/** Faults of the whole body. */
function addShapes(acme: Signer, edited: (edit: Edit) => string, add: Add): void {
  const whole = () => edited({ path: '-' })
  for (const levels of [16, 17, 100, 1_000, 10_000, 30_000]) {
    add('depth', `arrays ${levels}`, edited({ path: '$', append: `"x":${nest(levels)}` }))
    // Six bytes per level: the deepest body would be too large.
    if (levels > 9_000) continue
    const objects = nest(levels, '{"a":', '}').replace(':}', ':1}')
    add('depth', `objects ${levels}`, edited({ path: '$', append: `"x":${objects}` }))
  }
  for (const levels of [17, 30_000]) {
    add('depth', `a body of arrays ${levels}`, nest(levels), { expected: [401] })
    add('depth', `never closed ${levels}`, '['.repeat(levels), { expected: [401] })
    const unclosed = `${whole().slice(0, -1)},"x":${'['.repeat(levels)}`
    add('depth', `opened at the end ${levels}`, unclosed)
  }
  const utf16 = Buffer.from(whole(), 'utf16le')
  const encodings: Record<string, Buffer> = {
    'a byte order mark': Buffer.from(`\ufeff${whole()}`),
    'UTF-16, little end first': utf16,
    'UTF-16, big end first': Buffer.from(utf16).swap16(),
    'a mark and UTF-16': Buffer.from(`\ufeff${whole()}`, 'utf16le'),
    'null bytes after it': Buffer.from(`${whole()}\0\0`),
    'zeros only': Buffer.alloc(100),
  }
  for (const [name, body] of Object.entries(encodings)) {
    const expected = ['a byte order mark', 'null bytes after it'].includes(name) ? [400] : [401]
    add('another encoding', name, body, { expected })
  }
  const broken = ['', ' ', 'null', '"x"', '1', '[]', '{}', '{', '}', 'tenant_id=acme', '<a/>']
  for (const text of broken) add('no submission', JSON.stringify(text), text, { expected: [401] })
  for (const [name, text] of [
    ['two documents', whole() + whole()],
    ['text after it', `${whole()}x`],
    ['a comment', `/* */${whole()}`],
    ['a comment at the end', `${whole()}// x`],
    ['a comma at the end', `${whole().slice(0, -1)},}`],
    ['single quotes', whole().replaceAll('"', "'")],
    ['a form feed for a space', `\f${whole()}`],
    ['a no-break space', `\u00a0${whole()}`],
  ] as const) {
    add('no submission', name, text, { expected: name === 'single quotes' ? [401] : [400] })
  }
  const cut = Buffer.from(whole())
  const named = cut.indexOf(acme.tenantId) + acme.tenantId.length
  for (let length = 1; length < cut.length; length++) {
    const expected = length > named ? [400] : [401]
    add('cut off and signed', `${length} bytes`, cut.subarray(0, length), { expected })
  }
  addSizes(acme, edited, add)
}

function addSizes({ tenantId }: Signer, edited: (edit: Edit) => string, add: Add): void {
  const filled = (bytes: number) => {
    const text = edited({ path: '$', append: `"x":"${mark}"` })
    return text.replace(mark, 'x'.repeat(bytes - text.length + mark.length))
  }
  for (const bytes of [64 * 1024 + 1, 128 * 1024, 1024 * 1024, 10 * 1024 * 1024]) {
    add('size', `${bytes} bytes`, filled(bytes), { expected: [413] })
  }
  const keys = (count: number, key: (at: number) => string) =>
    `{${Array.from({ length: count }, (_, at) => `"${key(at)}":0`).join()}}`
  for (const category of ['root', 'tamper', 'network']) {
    const path = `$.signals.${category}`
    add('size', `513 keys of ${category}`, edited({ path, value: keys(513, (at) => `k${at}`) }))
  }
  for (const name of ['sdk_version', 'platform', 'batch_type']) {
    const value = `"${'x'.repeat(129)}"`
    add('size', `129 characters of ${name}`, edited({ path: `$.sdk_meta.${name}`, value }))
  }
  // As many members, quotes and escapes as a body can hold.
  const large: [string, string][] = [
    ['a member a time', keys(8_000, (at) => at.toString(36))],
    ['one key again and again', keys(9_000, () => 'a')],
    ['escapes', `"${'\\u0041'.repeat(10_000)}"`],
    ['backslashes', `"${'\\\\'.repeat(30_000)}"`],
    ['5,000 members', keys(5_000, (at) => at.toString(36))],
    ['forbidden keys', `[${'{"__proto__":1},'.repeat(3_900)}1]`],
  ]
  for (const [name, value] of large) {
    const isValid = ['a member a time', 'escapes', 'backslashes'].includes(name)
    const at = isValid ? '$.device_id' : '$.extra'
    const edit = isValid ? { path: at, value } : { path: '$', append: `"extra":${value}` }
    add('size', `${tenantId}: ${name}`, edited(edit))
  }
}
