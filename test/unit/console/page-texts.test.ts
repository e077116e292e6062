/** What the pages are compiled to, so that a page's translator does not break them. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { webFolder } from '../../../services/console/serve/pages-folder.ts'

// By name, because React's types would change those of the browser in all other tests.
const load = (name: string) => import(name)
const { createElement: h } = await load('react')
const { renderToStaticMarkup } = await load('react-dom/server')
const { Fragment, jsx, jsxs } = await load(join(webFolder, 'jsx/jsx-runtime.ts'))

/** As `<type {...props}>{children}</type>` is compiled. */
const write = (type: unknown, children: unknown, props: object = {}): string =>
  renderToStaticMarkup((Array.isArray(children) ? jsxs : jsx)(type, { ...props, children }))

describe('a text of the pages', () => {
  it('that stands beside something else has an element of its own, which keeps its place', () => {
    const bold = h('b', null, 'x')
    expect(write('p', ['a ', bold, ' b'])).toBe('<p><span>a </span><b>x</b><span> b</span></p>')
    expect(write('p', [false, 'on'])).toBe('<p><span>on</span></p>')
    expect(write('p', [12, ' rows', null])).toBe('<p><span>12 rows</span></p>')
    expect(write('p', [bold, ['a', 1]])).toBe('<p><b>x</b><span>a1</span></p>')
    // An element after a text that comes and goes is the same element.
    const keep = h('input')
    const places = (child: unknown) => {
      const { props } = jsxs('p', { children: [child, keep] })
      return props.children.indexOf(keep)
    }
    expect([places('text'), places(false)]).toEqual([1, 1])
  })

  it('that is alone stays alone: React replaces the content of its element', () => {
    expect(write('p', 'a')).toBe('<p>a</p>')
    expect(write('p', ['a ', 1, ' b'])).toBe('<p>a 1 b</p>')
    expect(write('p', [h('b', { key: 1 }, 'x'), ' ', h('b', { key: 2 }, 'y')])).toBe(
      '<p><b>x</b> <b>y</b></p>',
    )
    expect(write('option', ['a', 1])).toBe('<option>a1</option>')
  })

  it('in a fragment, or given to a component, has its element where it is shown', () => {
    expect(write(Fragment, 'a')).toBe('<span>a</span>')
    expect(write(Fragment, ['a ', h('b', null, 'x')])).toBe('<span>a </span><b>x</b>')
    const Button = ({ children }: { children?: unknown }) =>
      jsxs('button', { children: [h('i'), children] })
    expect(write(Button, ['Replay ', 3])).toBe('<button><i></i><span>Replay 3</span></button>')
  })

  it('that is code or an id is not translated', () => {
    expect(write('code', 'a')).toBe('<code translate="no">a</code>')
    expect(write('b', 'a', { className: 'x font-mono' })).toContain(' translate="no"')
    const Link = (props: object) => jsx('a', props)
    expect(write(Link, 'evt_1', { className: 'font-mono' })).toContain(' translate="no"')
    expect(write('b', 'a', { className: 'font-monospace' })).toBe('<b class="font-monospace">a</b>')
  })
})

/** Words that named something unclearly, as they stood in the pages; each has a better one now. */
const oldWords =
  /\bGained\b|\bAll of them\b|>\s*Drop\s*<|No alert is open|An alert stays:|I have kept (it|them)|Of fleet|What a policy says now|halved, as confirmed|or you may not see it|Whose log|Read the list again|(title=|name: |label: )["']Analysts["']/

const sources = () =>
  readdirSync(webFolder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /^(pages|shell|components)\b.*\.tsx?$/.test(name) || name === 'pages.ts')
    .map((name) => ({ name, text: readFileSync(join(webFolder, name), 'utf8') }))

it('each dialog of the pages gives the focus back to what opened it', () => {
  const dialogs = sources().filter(({ text }) => /\bDialog\b[^\n]* from 'radix-ui'/.test(text))
  const own = dialogs.map(({ name, text }) => ({
    name,
    contents: text.match(/<(Dialog|Primitive)\.Content\b/g)?.length ?? 0,
    returning: text.match(/\{\.\.\.focus\}/g)?.length ?? 0,
  }))
  expect(own.length).toBeGreaterThanOrEqual(4)
  for (const { name, contents, returning } of own)
    expect([name, returning]).toEqual([name, contents])
})

it('the pages use no word that was replaced by a clearer one', () => {
  const files = sources()
  expect(files.length).toBeGreaterThan(200)
  const found = files.flatMap(({ name, text }) => {
    const match = oldWords.exec(text)
    return match === null ? [] : [`${name}: ${match[0]}`]
  })
  expect(found).toEqual([])
})
