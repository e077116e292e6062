/**
 * What each reason flag says. A flag groups signals that mean the same thing to a fraud team.
 */
import type { Flag } from './flag-codes.ts'

export type FlagText = {
  /** For people, beside the code. */
  name: string
  about: string
  /** Continues "This phone …"; null for what is no reason by itself. */
  clause: string | null
}

export const flags: Readonly<Record<Flag, FlagText>> = {
  ROOTED: { name: 'Rooted', about: 'The Android device is rooted.', clause: 'is rooted' },
  JAILBROKEN: {
    name: 'Jailbroken',
    about: 'The iOS device is jailbroken.',
    clause: 'is jailbroken',
  },
  ROOT_HIDING: {
    name: 'Hidden root',
    about: 'Something on the device hides root from apps.',
    clause: 'hides from apps that it is rooted',
  },
  BOOTLOADER_UNLOCKED: {
    name: 'Unlocked boot',
    about: 'The boot chain is unlocked or not verified.',
    clause: 'starts without a verified boot chain',
  },
  CUSTOM_OS: {
    name: 'Custom system',
    about: 'The device starts a system that another maker than its vendor has signed.',
    clause: 'runs a system that is not its vendor’s',
  },
  SYSTEM_MODIFIED: {
    name: 'Modified system',
    about: 'The system image is not the vendor’s release build.',
    clause: 'runs a modified system',
  },
  EMULATOR: {
    name: 'Emulator',
    about: 'The app runs in an emulator or simulator.',
    clause: 'is an emulator',
  },
  UNUSUAL_HARDWARE: {
    name: 'Unusual hardware',
    about: 'The device is unlike a phone, as tablets, Chromebooks and some emulators are.',
    clause: 'is unlike a phone',
  },
  CLOUD_DEVICE: {
    name: 'Cloud phone',
    about: 'The device is a cloud phone or part of a device farm.',
    clause: 'is a cloud phone or part of a device farm',
  },
  APP_CLONED: {
    name: 'App clone',
    about: 'The app runs in a clone that another app made.',
    clause: 'runs a clone of the app',
  },
  SECOND_SPACE: {
    name: 'Second space',
    about: 'The app runs in a dual app, a secure folder, a work profile or for a second user.',
    clause: 'runs the app in a second space, such as a work profile',
  },
  DEBUGGER_ATTACHED: {
    name: 'Debugger',
    about: 'A debugger is attached or prepared.',
    clause: 'has a debugger attached to the app',
  },
  HOOKING_DETECTED: {
    name: 'Code hooking',
    about: 'An instrumentation framework hooks the app.',
    clause: 'runs code that alters the app',
  },
  AUTOMATION_LIKELY: {
    name: 'Automation',
    about: 'Input comes from automation rather than a person.',
    clause: 'is operated by a program',
  },
  ACCESSIBILITY_SERVICE: {
    name: 'Accessibility service',
    about: 'An accessibility service can read the screen and act for its user.',
    clause: 'has a service that can read the screen and act for its user',
  },
  UNUSUAL_ACTIVITY: {
    name: 'Unusual activity',
    about: 'Google finds the activity of the device or the account unusual.',
    clause: 'shows activity that Google finds unusual',
  },
  APP_TAMPERED: {
    name: 'Altered app',
    about: 'The code of the app was changed.',
    clause: 'runs an altered copy of the app',
  },
  APP_UNPROTECTED: {
    name: 'Unprotected app',
    about: 'The build of the app lacks a protection.',
    clause: 'runs a build of the app that lacks a protection',
  },
  REPACKAGED: {
    name: 'Repackaged app',
    about: 'The app was signed with another key or renamed.',
    clause: 'runs an app that somebody else has signed',
  },
  UNTRUSTED_INSTALL: {
    name: 'Untrusted install',
    about: 'The app came from outside the trusted stores.',
    clause: 'got the app from outside the trusted stores',
  },
  ATTESTATION_FAILED: {
    name: 'Attestation failed',
    about: 'The platform’s attestation failed or was refused.',
    clause: 'failed the platform’s attestation',
  },
  TEST_EVIDENCE: {
    name: 'Test evidence',
    about: 'The evidence is of a development environment, or its verdict was chosen for a test.',
    clause: 'sent evidence that is made for tests',
  },
  ATTESTATION_MISSING: {
    name: 'Attestation missing',
    about: 'The event has no valid proof of the install that sent it.',
    clause: 'sent no valid proof of its install',
  },
  ATTESTATION_KEY_SHARED: {
    name: 'Shared attestation key',
    about: 'The attested key or its certificate is on phones that cannot share it.',
    clause: 'has an attested key that other phones have too',
  },
  ATTESTATION_KEY_REVOKED: {
    name: 'Revoked attestation key',
    about: 'The platform has revoked the certificate of the attested key.',
    clause: 'has an attested key that was revoked',
  },
  APP_UNKNOWN: {
    name: 'Unknown app',
    about: 'The attested app is not one of the tenant’s.',
    clause: 'runs an app that is not one of yours',
  },
  BOOT_UNVERIFIED: {
    name: 'Unverified boot',
    about: 'The phone’s hardware says that its vendor did not sign the system that started.',
    clause: 'runs a system that its vendor did not sign',
  },
  CLAIM_CONTRADICTED: {
    name: 'Contradicted claim',
    about: 'The client claims a better verdict than the service verified.',
    clause: 'claims a better verdict than was verified',
  },
  DEVICE_SPOOFED: {
    name: 'Spoofed device',
    about: 'The device claims to be another one.',
    clause: 'claims to be another phone',
  },
  DEVICE_BINDING_CHANGED: {
    name: 'Changed binding',
    about: 'The app is bound to another device or install than before.',
    clause: 'is not the phone to which the app was bound',
  },
  TIME_SPOOFED: {
    name: 'Clock set by hand',
    about: 'The device clock was set by hand.',
    clause: 'has a clock that was set by hand',
  },
  MALWARE_PRESENT: {
    name: 'Malware',
    about: 'Known malicious apps are installed.',
    clause: 'has malicious apps installed',
  },
  REMOTE_CONTROL: {
    name: 'Remote control',
    about: 'The device is controlled remotely.',
    clause: 'is controlled remotely',
  },
  ACTIVE_CALL: { name: 'Active call', about: 'The user is in a call.', clause: 'is in a call' },
  SCREEN_CAPTURE: {
    name: 'Screen capture',
    about: 'The screen is captured, mirrored or overlaid.',
    clause: 'has its screen captured or overlaid',
  },
  LOCATION_SPOOFED: {
    name: 'Simulated location',
    about: 'The location is simulated.',
    clause: 'simulates its location',
  },
  CAMERA_SPOOFED: {
    name: 'Virtual camera',
    about: 'The camera is replaced by a virtual one.',
    clause: 'has a virtual camera',
  },
  DEVELOPER_SETTINGS: {
    name: 'Developer settings',
    about: 'Developer settings are switched on.',
    clause: 'has developer settings switched on',
  },
  DEVICE_POSTURE: {
    name: 'Poor maintenance',
    about: 'The device is poorly maintained: no passcode, outdated or recently reset.',
    clause: 'is poorly maintained',
  },
  VPN_SUSPECTED: {
    name: 'VPN',
    about: 'Traffic goes through a VPN or relay.',
    clause: 'uses a VPN or a relay',
  },
  PROXY_SUSPECTED: {
    name: 'Proxy',
    about: 'Traffic goes through a proxy, data centre or Tor.',
    clause: 'uses a proxy',
  },
  MITM_SUSPECTED: {
    name: 'Interception',
    about: 'The traffic may be intercepted.',
    clause: 'sends traffic that may be intercepted',
  },
  UNSAFE_NETWORK: {
    name: 'Unsafe network',
    about: 'The network or its encryption is weak.',
    clause: 'uses a weak network',
  },
  HOSTING_NETWORK: {
    name: 'Data centre',
    about: 'The request came from a data centre.',
    clause: 'connects from a data centre',
  },
  TOR_EXIT: {
    name: 'Tor',
    about: 'The request came through the Tor network.',
    clause: 'connects through the Tor network',
  },
  COUNTRY_MISMATCH: {
    name: 'Country mismatch',
    about: 'The address is in another country than the phone’s SIM or time zone.',
    clause: 'connects from another country than its SIM or time zone says',
  },
  TIMEZONE_MISMATCH: {
    name: 'Time zone mismatch',
    about: 'The time zone of the phone is not that of its address.',
    clause: 'is in another time zone than its address',
  },
  WEIGHED_ORIGIN: {
    name: 'Weighed origin',
    about: 'The policy weighs the country or the network operator of the address.',
    clause: 'connects from a country or an operator that the policy weighs',
  },
  REQUEST_FORGED: {
    name: 'Forged request',
    about: 'The request was not made by a genuine SDK.',
    clause: 'sent a request that no genuine app makes',
  },
  REQUEST_REPLAYED: {
    name: 'Copied request',
    about: 'The request is a copy of an earlier one.',
    clause: 'sent a copy of an earlier request',
  },
  HIGH_VELOCITY: {
    name: 'High velocity',
    about: 'Far more sessions, countries, networks, devices or users than is usual.',
    clause: 'does far more than is usual',
  },
  MANY_USERS_PER_DEVICE: {
    name: 'Many users',
    about: 'More users appear on the device than a household has.',
    clause: 'is used by more people than a household has',
  },
  NEW_DEVICE: {
    name: 'New device',
    about: 'A user who is known from other devices is new on this one.',
    clause: 'is new for a user who is known from other phones',
  },
  REINSTALLED: {
    name: 'Reinstalled',
    about: 'A phone that is known from an earlier install has installed the app again.',
    clause: 'has installed the app again',
  },
  IDENTIFIERS_SHARED: {
    name: 'Shared identifiers',
    about: 'The identifiers of the phone are those of several phones: copied, or not unique.',
    clause: 'has the identifiers of other phones',
  },
  DEVICE_ID_SHARED: {
    name: 'Shared device id',
    about: 'The event comes from another phone than the device id first came from.',
    clause: 'uses the device id of another phone',
  },
  MANY_DEVICES_PER_USER: {
    name: 'Many devices',
    about: 'The user appears on more devices than a person owns.',
    clause: 'belongs to a user with more phones than a person owns',
  },
  SESSION_REUSED: {
    name: 'Reused session',
    about: 'One session id appears on more than one device.',
    clause: 'uses a session of another phone',
  },
  IMPOSSIBLE_TRAVEL: {
    name: 'Impossible travel',
    about: 'The user is in two places sooner than anybody travels.',
    clause: 'has a user who is in two places sooner than anybody travels',
  },
  PLATFORM_CHANGED: {
    name: 'Changed platform',
    about: 'One device id reports different platforms.',
    clause: 'reports different platforms',
  },
  SIGNAL_FLAPPING: {
    name: 'Flapping signal',
    about: 'A signal alternates between detected and clean.',
    clause: 'has a signal that alternates',
  },
  SCORE_MISMATCH: {
    name: 'Score mismatch',
    about: 'The client’s own score is far from the one its signals give.',
    clause: 'reports a score that its signals do not give',
  },
  SIGNALS_MISSING: {
    name: 'Missing signals',
    about: 'Signals are missing that the policy requires or this SDK version usually sends.',
    clause: 'leaves out signals',
  },
  COUNTER_REUSED: {
    name: 'Reused counter',
    about: 'The counter of an App Attest assertion did not rise: a copy, or a race.',
    clause: 'sent an assertion whose counter did not rise',
  },
  REPLAYED: {
    name: 'Replayed event',
    about: 'An earlier event of the device came again, late or from another network.',
    clause: 'had an earlier event sent again',
  },
  TENANT_SIGNAL: {
    name: 'Own signal',
    about: 'A signal was found that the tenant declared or chose to weigh itself.',
    clause: 'has a signal that you weigh yourself',
  },
  PLACEHOLDER_ID: {
    name: 'Placeholder id',
    about: 'An id is a placeholder that many share, so nothing is counted by it.',
    clause: null,
  },
  ALLOW_LISTED: {
    name: 'Allow list',
    about: 'An operator or a key of the tenant has put the device or user on the allow list.',
    clause: 'is on the allow list',
  },
  DENY_LISTED: {
    name: 'Deny list',
    about:
      'An operator or a key of the tenant has put the device, the user or the connection on the deny list.',
    clause: 'is on the deny list',
  },
  DENY_LISTED_PHONE: {
    name: 'Denied phone',
    about: 'An earlier install of the phone is on the deny list.',
    clause: 'had an install that is on the deny list',
  },
  CONNECTION_ALLOWED: {
    name: 'Allowed connection',
    about: 'The connection is on the allow list: what the service saw of it counts nothing.',
    clause: null,
  },
  SANDBOX_FORCED: {
    name: 'Test device',
    about: 'A sandbox test device forces this action.',
    clause: 'is a test device of the sandbox',
  },
}
