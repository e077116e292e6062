/** An id in monospace, cut in the middle, copied by a click. */
import { useState } from 'react'
import { toVisible } from '#shared/core/base/visible-text.ts'
import { classes } from './classes.ts'
import { Icon } from './icons.tsx'

const charactersMax = 20
const shownMs = 1_500

/** Keeps the start and the end of a long text, whose invisible characters are escaped. */
export function cutMiddle(text: string, most = charactersMax): string {
  const shown = toVisible(text)
  if (shown.length <= most) return shown
  const kept = Math.floor((most - 1) / 2)
  return `${shown.slice(0, kept)}…${shown.slice(-kept)}`
}

/** Copies a text; returns whether it was copied a moment ago. */
export function useCopy(): [copied: boolean, copy: (text: string) => void] {
  const [copied, setCopied] = useState(false)
  const copy = (text: string) => {
    const done = () => {
      setCopied(true)
      setTimeout(() => setCopied(false), shownMs)
    }
    // Without HTTPS a browser has no clipboard for scripts.
    if (navigator.clipboard === undefined) return
    navigator.clipboard.writeText(text).then(done, () => undefined)
  }
  return [copied, copy]
}

/**
 * An id as a text, for links; invisible characters are escaped.
 * @param most characters, beyond which its middle is left out
 */
export function IdText({ value, most }: { value: string; most?: number }) {
  const shown = toVisible(value)
  return (
    <bdi title={shown} translate="no">
      {most === undefined ? shown : cutMiddle(shown, most)}
    </bdi>
  )
}

export function Id({ value, most }: { value: string; most?: number }) {
  const [copied, copy] = useCopy()
  const shown = toVisible(value)
  return (
    <button
      className={classes(
        'group inline-flex max-w-full items-center gap-1 rounded text-left font-mono text-sm',
        'break-all hover:bg-hover',
        copied && 'text-good',
      )}
      onClick={(event) => {
        event.stopPropagation()
        copy(value)
      }}
      title={shown}
      type="button"
    >
      <span className="sr-only">Copy {shown}</span>
      <bdi aria-hidden="true">{cutMiddle(shown, most)}</bdi>
      <span className={copied ? '' : 'opacity-0 group-hover:opacity-100 group-focus:opacity-100'}>
        <Icon name={copied ? 'check' : 'copy'} size={12} />
      </span>
      <span aria-live="polite" className="sr-only">
        {copied ? 'copied' : ''}
      </span>
    </button>
  )
}
