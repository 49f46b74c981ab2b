import { childEnvironment, runProgram } from '../../supervise/index.ts';
import { DeliveryError, deliveryTimeoutMs, type Notice } from './delivery.ts';

/** AppleScript that takes its texts as arguments: no text becomes part of the script. */
const appleScript = 'on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run';

/** Program and arguments that show a notice; undefined where this system has none. */
export function desktopCommand(
  platform: NodeJS.Platform,
  { title, body, actionUrl }: Notice,
): readonly [program: string, ...args: string[]] | undefined {
  const text = `${body}\n${actionUrl}`;
  if (platform === 'darwin') return ['osascript', '-e', appleScript, '--', title, text];
  // Servers of the desktop read the body as markup.
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  if (platform === 'linux') return ['notify-send', '--app-name=Oratorio', '--', title, escaped];
  return undefined;
}

/** Where the desktop listens. */
const sessionVariables = ['DBUS_SESSION_BUS_ADDRESS', 'DISPLAY', 'WAYLAND_DISPLAY', 'XAUTHORITY'];

/** @throws DeliveryError */
export async function showOnDesktop(
  notice: Notice,
  environment: Readonly<Record<string, string | undefined>>,
  signal: AbortSignal,
): Promise<void> {
  const [program, ...args] = desktopCommand(process.platform, notice) ?? [];
  if (program === undefined) throw refused('this system has no program that shows notices');
  const env = childEnvironment(environment, { pass: sessionVariables });
  const end = await runProgram({ program, args, env, signal, timeoutMs: deliveryTimeoutMs }).catch(() => {
    throw refused(`${program} is not installed`);
  });
  if (end.exitCode !== 0) throw refused(`${program} ended with code ${end.exitCode ?? '?'}`);
}

const refused = (message: string): DeliveryError => new DeliveryError({ kind: 'refused', message });
