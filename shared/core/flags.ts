/**
 * The documented list of reason flags: what an alert's `flags` and its `reasons[].code` can be. A
 * flag groups signals that mean the same thing to a fraud team.
 */
export const flags = {
  ROOTED: 'The Android device is rooted.',
  JAILBROKEN: 'The iOS device is jailbroken.',
  ROOT_HIDING: 'Something on the device hides root from apps.',
  BOOTLOADER_UNLOCKED: 'The boot chain is unlocked or not verified.',
  SYSTEM_MODIFIED: 'The system image is not the vendor’s release build.',
  EMULATOR: 'The app runs in an emulator or simulator.',
  CLOUD_DEVICE: 'The device is a cloud phone or part of a device farm.',
  APP_CLONED: 'The app runs in a clone, a second space or a work profile.',
  DEBUGGER_ATTACHED: 'A debugger is attached or prepared.',
  HOOKING_DETECTED: 'An instrumentation framework hooks the app.',
  AUTOMATION_LIKELY: 'Input comes from automation rather than a person.',
  APP_TAMPERED: 'The code of the app was changed.',
  REPACKAGED: 'The app was signed by somebody else or renamed.',
  UNTRUSTED_INSTALL: 'The app came from outside the trusted stores.',
  ATTESTATION_FAILED: 'The platform’s attestation failed or was refused.',
  DEVICE_SPOOFED: 'The device claims to be another one.',
  TIME_SPOOFED: 'The device clock was set by hand.',
  MALWARE_PRESENT: 'Known malicious apps are installed.',
  REMOTE_CONTROL: 'Somebody controls the device remotely or speaks to its user meanwhile.',
  SCREEN_CAPTURE: 'The screen is captured, mirrored or overlaid.',
  LOCATION_SPOOFED: 'The location is simulated.',
  CAMERA_SPOOFED: 'The camera is replaced by a virtual one.',
  DEVELOPER_SETTINGS: 'Developer settings are switched on.',
  DEVICE_POSTURE: 'The device is kept carelessly: no passcode, outdated, fresh from a reset.',
  VPN_SUSPECTED: 'Traffic goes through a VPN or relay.',
  PROXY_SUSPECTED: 'Traffic goes through a proxy, data centre or Tor.',
  MITM_SUSPECTED: 'Somebody reads the traffic in the middle.',
  UNSAFE_NETWORK: 'The network or its encryption is weak.',
  REQUEST_FORGED: 'The request was not made by a genuine SDK.',
  HIGH_VELOCITY: 'The device starts far more sessions than a person does.',
  MANY_USERS_PER_DEVICE: 'More users appear on the device than a household has.',
  SANDBOX_FORCED: 'A sandbox test device forces this action.',
} as const satisfies Record<string, string>

export type Flag = keyof typeof flags
