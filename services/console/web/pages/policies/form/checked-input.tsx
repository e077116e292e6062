/** A field whose error is shown once it is left: nobody is told off while typing. */
import { type ComponentProps, type FocusEvent, useState } from 'react'
import { Input } from '../../../components/field.tsx'

/**
 * Whether the focus is within an element, or has left it, and what to put on it to know. A menu
 * that opens from it is within it.
 */
export function useFocusWithin() {
  const [isWithin, setWithin] = useState(false)
  const [hasLeft, setLeft] = useState(false)
  return {
    isWithin,
    hasLeft,
    onFocus: () => setWithin(true),
    onBlur: (event: FocusEvent) => {
      if (event.currentTarget.contains(event.relatedTarget)) return
      setWithin(false)
      setLeft(true)
    },
  }
}

/** @param wasLeft false for a field of something new: nothing is wrong with it at first sight */
export function CheckedInput({
  error,
  wasLeft = true,
  ...rest
}: ComponentProps<typeof Input> & { wasLeft?: boolean }) {
  const { isWithin, hasLeft, ...focus } = useFocusWithin()
  const isShown = !isWithin && (hasLeft || wasLeft)
  return <Input {...rest} {...focus} error={isShown ? error : undefined} />
}

/** An empty field is no number, which the server then names. */
export const toPoints = (text: string): number =>
  text === '' ? (null as unknown as number) : Number(text)

/** Names with commas between them. */
export const toNames = (text: string): string[] => text.split(',').map((one) => one.trim())

/** What a list of errors says about an entry: of the entry itself, or of one of a list in it. */
export const toListError = (
  errorOf: (path: string) => string | undefined,
  path: string,
  length: number,
): string | undefined => {
  const own = errorOf(path)
  if (own !== undefined) return own
  for (let at = 0; at < length; at++) {
    const inner = errorOf(`${path}[${at}]`)
    if (inner !== undefined) return inner
  }
  return undefined
}
