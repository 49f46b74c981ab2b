import { lstatSync, type Stats } from 'node:fs';
import { defaults } from '../../defaults.ts';
import { ownershipOf } from '../../files/index.ts';
import { missingFileHint, type StackLayout, stackFiles } from '../../layout.ts';
import type { DoctorContext } from '../context.ts';
import { fail, ok, warn, worst } from '../finding.ts';
import type { FileText } from '../stack-view.ts';
import type { Finding } from '../types.ts';

type StackPath = keyof typeof stackFiles;

/** Files of a stack (specification §2.9), with the widest permitted mode. */
const stackPaths: readonly { readonly at: StackPath; readonly mode: number; readonly isDirectory?: true }[] = [
  { at: 'compose', mode: defaults.fileModes.public },
  { at: 'env', mode: defaults.fileModes.secret },
  { at: 'config', mode: defaults.fileModes.config },
  { at: 'workspace', mode: defaults.directoryModes.workspace, isDirectory: true },
  { at: 'agentHome', mode: defaults.directoryModes.agentHome, isDirectory: true },
  { at: 'agentConfig', mode: defaults.fileModes.config },
  { at: 'secrets', mode: defaults.directoryModes.secrets, isDirectory: true },
];
const secretPaths: ReadonlySet<StackPath> = new Set(['env', 'secrets', 'privateKey', 'state', 'agentHome']);
const moves = 'Run oratorio server restart: it moves the settings of the agent server out of the workspace.';
const missingHints: Readonly<Partial<Record<StackPath, string>>> = { agentHome: moves, agentConfig: moves };

const statOf = (path: string): Stats | undefined => lstatSync(path, { throwIfNoEntry: false });

export function present({ layout }: DoctorContext): Finding {
  const findings = stackPaths.map(({ at, isDirectory = false }): Finding => {
    const found = statOf(layout[at]);
    const name = stackFiles[at];
    if (!found) return fail(`${name} is missing`, missingHints[at] ?? missingFileHint);
    if (found.isSymbolicLink())
      return warn(`${name} is a symbolic link`, 'Put the file itself there: it is never written through a link.');
    const isRight = isDirectory ? found.isDirectory() : found.isFile();
    return isRight
      ? ok(name)
      : fail(`${name} is not a ${isDirectory ? 'directory' : 'file'}`, `Move it away. ${missingFileHint}`);
  });
  return worst(findings, 'All files are there.');
}

/** Checks that only owners can read secrets and write files. */
export function modes({ layout }: DoctorContext): Finding {
  const all = [
    ...stackPaths,
    { at: 'privateKey', mode: defaults.fileModes.secret },
    { at: 'state', mode: defaults.directoryModes.state },
  ] as const;
  const findings = all.map(({ at, mode }) => modeOf(layout, at, mode));
  return worst(findings, 'Only their owners can read secrets and write files.');
}

function modeOf(layout: StackLayout, at: StackPath, most: number): Finding {
  const found = statOf(layout[at]);
  if (!found || found.isSymbolicLink()) return ok(at);
  const mode = found.mode & 0o777;
  const tooMuch = mode & ~most;
  if (tooMuch === 0) return ok(at);
  const saw = `${stackFiles[at]} has mode ${octal(mode)}`;
  const hint = `chmod ${octal(most)} ${layout[at]}`;
  return secretPaths.has(at) || (tooMuch & 0o022) !== 0 ? fail(saw, hint) : warn(saw, hint);
}

const octal = (mode: number): string => mode.toString(8).padStart(4, '0');

/** Checks that files belong to root, to this user, or to the user of the containers, which must be able to read the key. */
export function owners(context: DoctorContext): Finding {
  const me = context.host.uid();
  if (me === null) return ok('This system has no such owners.');
  const containers = Number(context.value('ORATORIO_UID'));
  const known = new Set([0, me, containers]);
  const { layout } = context;
  const others = [...stackPaths.map(({ at }) => at), 'privateKey' as const, 'state' as const].flatMap((at) => {
    const found = statOf(layout[at]);
    return found && !known.has(found.uid)
      ? [warn(`${stackFiles[at]} belongs to user ${found.uid}`, `chown ${containers} ${layout[at]}`)]
      : [];
  });
  const mounted = (['secrets', 'privateKey', 'workspace', 'agentHome', 'agentConfig', 'config'] as const).flatMap(
    (at) => {
      const found = statOf(layout[at]);
      return found && !canRead(found, containers, Number(context.value('ORATORIO_GID')))
        ? [
            fail(
              `The containers (user ${containers}) cannot read ${stackFiles[at]}`,
              `chown ${containers} ${layout[at]}`,
            ),
          ]
        : [];
    },
  );
  return worst([...mounted, ...others], 'Files belong to the right users.');
}

function canRead({ mode, uid, gid }: Stats, user: number, group: number): boolean {
  if (user === 0) return true;
  if (uid === user) return (mode & 0o400) !== 0;
  return gid === group ? (mode & 0o040) !== 0 : (mode & 0o004) !== 0;
}

const generated = ['compose', 'overlay', 'caddyfile'] as const;

/** Whether the generated files are unchanged. A changed one is never overwritten or removed. */
export function markers({ texts }: DoctorContext): Finding {
  return worst(
    generated.map((at) => markerOf(stackFiles[at], texts[at])),
    'Generated files are unchanged.',
  );
}

const ownershipFindings: Readonly<Record<ReturnType<typeof ownershipOf>, (name: string) => Finding>> = {
  ours: (name) => ok(name),
  edited: (name) =>
    warn(
      `${name} was edited by hand`,
      'It is not overwritten. To have it made again, move it away and rerun the command.',
    ),
  foreign: (name) => warn(`${name} was not made by oratorio server`, 'It is not overwritten, and not kept up to date.'),
};

function markerOf(name: string, text: FileText): Finding {
  if (text === null) return ok(name);
  return text instanceof Error ? fail(text.message, null) : ownershipFindings[ownershipOf(text)](name);
}

/** The overlay and the gateway's file are there both or not at all (specification §2.9). */
export function pair({ texts: { overlay, caddyfile } }: DoctorContext): Finding {
  const hint =
    'oratorio server webhook disable; to have a gateway, then: oratorio server webhook enable --public-host HOST';
  if ((overlay === null) === (caddyfile === null))
    return ok(overlay === null ? 'There is no webhook gateway.' : 'The webhook gateway has its two files.');
  const [there, missing] =
    overlay === null ? [stackFiles.caddyfile, stackFiles.overlay] : [stackFiles.overlay, stackFiles.caddyfile];
  return fail(`${there} is there and ${missing} is not.`, hint);
}
