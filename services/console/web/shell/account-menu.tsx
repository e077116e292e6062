/** Who is signed in, with theme, time zone, account and sign-out. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type Operator, sessionQuery, signOut } from '../api/session.ts'
import { Icon } from '../components/icons.tsx'
import { Menu, MenuChoice, MenuItem, MenuLine } from '../components/menu.tsx'
import { setTheme, setZone, usePreferences } from '../components/state/preferences.ts'
import { toastFailure } from '../components/toast.tsx'

export function AccountMenu({ operator }: { operator: Operator }) {
  const { theme, zone } = usePreferences()
  const navigate = useNavigate()
  const client = useQueryClient()
  const leave = useMutation({
    mutationFn: signOut,
    onSuccess: () => {
      client.setQueryData(sessionQuery.queryKey, null)
      client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'session' })
      void navigate({ to: '/', replace: true })
    },
    onError: (error) => toastFailure(`Not signed out: ${error.message}`),
  })
  return (
    <Menu
      align="start"
      trigger={
        <button
          className="flex h-10 w-full items-center gap-2.5 rounded-md px-2 text-left hover:bg-hover"
          type="button"
        >
          <Icon name="person" />
          <span className="grid min-w-0 flex-1 leading-4">
            <span className="truncate font-medium">
              <span className="sr-only">Account of </span>
              {operator.name}
            </span>
            <span className="truncate text-muted text-xs">{operator.role}</span>
          </span>
          <Icon name="more" size={14} />
        </button>
      }
    >
      <MenuItem onSelect={() => void navigate({ to: '/account' })}>
        <Icon name="key" />
        Password, second factor, sessions
      </MenuItem>
      <MenuItem onSelect={() => void navigate({ to: '/help' })}>
        <Icon name="help" />
        Help and API references
      </MenuItem>
      <MenuLine />
      <MenuChoice
        choices={[
          ['system', 'As the system'],
          ['light', 'Light'],
          ['dark', 'Dark'],
        ]}
        label="Theme"
        onChoose={setTheme}
        value={theme}
      />
      <MenuChoice
        choices={[
          ['local', `Local, ${Intl.DateTimeFormat().resolvedOptions().timeZone}`],
          ['utc', 'UTC'],
        ]}
        label="Times"
        onChoose={setZone}
        value={zone}
      />
      <MenuLine />
      <MenuItem onSelect={() => leave.mutate()}>
        <Icon name="right" />
        Sign out
      </MenuItem>
    </Menu>
  )
}
