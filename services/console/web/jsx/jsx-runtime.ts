/**
 * What `<p>…</p>` is compiled to: React's own runtime, with texts that a page's translator can
 * replace. A translator takes text nodes out of the page and puts elements in; React then changes
 * or removes a node that is gone. So a text that stands beside something else gets an element of
 * its own, which stays. What is monospace is an id or code, and is not translated.
 */
import { Fragment, jsx as reactJsx, jsxs as reactJsxs } from 'react/jsx-runtime'

export type { JSX } from 'react/jsx-runtime'
export { Fragment }

type Type = Parameters<typeof reactJsx>[0]
type Props = { children?: unknown; className?: string }

export const jsx = (type: Type, props: object, key?: string) =>
  reactJsx(type, toStable(type, props), key)

export const jsxs = (type: Type, props: object, key?: string) =>
  reactJsxs(type, toStable(type, props), key)

/** They have text alone. */
const textOnly = new Set<unknown>(['option', 'title', 'textarea', 'style', 'text'])
const codeElements = new Set<unknown>(['code', 'pre', 'kbd', 'samp'])

function toStable(type: Type, props: Props): object {
  const { children, className = '' } = props
  // A component passes it on, such as a link that is an id.
  const isCode = codeElements.has(type) || /\bfont-mono\b/.test(className)
  const given = isCode ? { translate: 'no', ...props } : props
  if (type === Fragment) return { ...given, children: wrapTexts([children].flat()) }
  if (!Array.isArray(children)) return given
  // A text that is alone in its element is no trouble: React sets the content of the element.
  if (textOnly.has(type) || children.every(isText)) {
    return children.every(isText) ? { ...given, children: children.join('') } : given
  }
  return { ...given, children: wrapTexts(children) }
}

const isText = (child: unknown): boolean =>
  (typeof child === 'string' && child !== '') || typeof child === 'number'

/** Puts neighbouring texts into one `span`, at the place of the first; the others stay in place. */
function wrapTexts(children: unknown[]): unknown[] {
  return children.map((child, at) => {
    if (Array.isArray(child)) return wrapTexts(child)
    if (!isText(child)) return child
    if (isText(children[at - 1])) return null
    const rest = children.slice(at)
    const end = rest.findIndex((one) => !isText(one))
    const text = rest.slice(0, end === -1 ? undefined : end).join('')
    // Space alone is never translated, and would be an item of its own in a flex box.
    return text.trim() === '' ? text : reactJsx('span', { children: text })
  })
}
