/** One line of the command palette. */
import type { IconName } from '../../components/icons.tsx'

export type Entry = {
  key: string
  kind: string
  text: string
  more?: string
  icon: IconName
  to: string
}
