/** Writes configurations the way a user would: settings that a workspace may not loosen go into the user's own file. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { trustWorkspace } from '../src/config/index.ts';

type Settings = Readonly<Record<string, unknown>>;

/** Settings of a workspace's file that do not hold, or not always, even when the user trusts the workspace. */
const usersOwn: readonly string[] = [
  'Permissions.DefaultApprovalPolicy',
  'Permissions.WorktreeRoot',
  'Tools.Web.AllowedHosts',
  'Supervision.PassEnvironment',
  'DashBoard.Auth',
  'DashBoard.Username',
  'DashBoard.Password',
  'DashBoard.AllowedHosts',
  'Api.Host',
  'AgUi.Host',
  'DashBoard.Host',
  'AppServer.WebSocket.Host',
  'Checkpoints',
  'Telemetry',
  'Notifications',
  'Hub',
];

const isObject = (value: unknown): value is Settings =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Moves one setting; both copies are plain objects of ours. */
function move(from: Record<string, unknown>, to: Record<string, unknown>, path: string): void {
  const [key = '', ...rest] = path.split('.');
  const inside = from[key];
  if (rest.length === 0) {
    if (inside === undefined) return;
    to[key] = inside;
    delete from[key];
    return;
  }
  if (!isObject(inside)) return;
  const target = isObject(to[key]) ? { ...(to[key] as Settings) } : {};
  const source = { ...inside };
  move(source, target, rest.join('.'));
  from[key] = source;
  if (Object.keys(target).length > 0) to[key] = target;
}

/** Writes `<workspace>/.oratorio/config.json` and trusts it; settings of the user alone are added to `<home>/config.json`. */
export function configureWorkspace(
  place: { readonly home: string; readonly workspace: string },
  config: unknown,
): void {
  const { home, workspace } = place;
  mkdirSync(join(workspace, '.oratorio'), { recursive: true });
  mkdirSync(home, { recursive: true });
  const file = join(home, 'config.json');
  const own: Record<string, unknown> = isObject(config) ? structuredClone(config) : {};
  const user: Record<string, unknown> = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
  const before = JSON.stringify(user);
  for (const path of usersOwn) move(own, user, path);
  if (JSON.stringify(user) !== before) writeFileSync(file, JSON.stringify(user), { mode: 0o600 });
  writeFileSync(join(workspace, '.oratorio', 'config.json'), JSON.stringify(own));
  trustWorkspace(place);
}
