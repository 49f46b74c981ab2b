import { lstatSync, type Stats } from 'node:fs';
import { defaults } from '../../defaults.ts';
import { overridesOf } from '../../engine/index.ts';
import { allVariables, checkSecretText, ownershipOf, type Variable } from '../../files/index.ts';
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

/** Lines of `.env` that Compose reads in another way than they look, or not at all. */
export function quoting({ env }: DoctorContext): Finding {
  const problems = env?.problems ?? [];
  return worst(
    problems.map(({ code, message }) => {
      const saw = message.replace(/\.$/, '');
      return code === 'duplicate'
        ? warn(saw, 'Remove one of the lines.')
        : fail(saw, 'Put the value in single quotes.');
    }),
    'Every line is read exactly as written.',
  );
}

/** Only the overlay reads it. */
const webhookSecret = 'ORATORIO_GITHUB_WEBHOOK_SECRET';
const restart = 'Then: oratorio server restart.';

/** Checks the required secrets: configured, missing or weak. Reports nothing else of them. */
export function required(context: DoctorContext): Finding {
  const needed = allVariables().filter(
    ([name, { default: preset }]) => preset === null && (context.hasIngress || name !== webhookSecret),
  );
  return worst(
    [project(context), ...needed.map(([name, each]) => requiredOf(name, each, context.value(name))), model(context)],
    `${needed.map(([name]) => name).join(', ')}: configured.`,
  );
}

function requiredOf(name: string, { isSecret }: Variable, value: string): Finding {
  if (value === '')
    return fail(`${name}: missing`, `Set it in .env, e.g. to the output of openssl rand -hex 32. ${restart}`);
  const isWeak = isSecret && 'refused' in checkSecretText(value);
  return isWeak ? warn(`${name}: weak`, `Set it to the output of openssl rand -hex 32. ${restart}`) : ok(name);
}

/** Without it Compose calls the stack after its directory, and another stack may be called so too. */
const project = ({ env }: DoctorContext): Finding =>
  env?.values.get('COMPOSE_PROJECT_NAME')
    ? ok('project')
    : fail('COMPOSE_PROJECT_NAME: missing', `Set it in .env to the name of the stack in docker compose ls. ${restart}`);

function model(context: DoctorContext): Finding {
  const [endpoint, key] = [context.value('ORATORIO_MODEL_ENDPOINT'), context.value('ORATORIO_MODEL_API_KEY')];
  if (endpoint === '' && key === '')
    return warn(
      'no model provider is set, so a demo without AI answers',
      `Set ORATORIO_MODEL_ENDPOINT and ORATORIO_MODEL_API_KEY in .env. ${restart}`,
    );
  if (key === '')
    return warn(
      'ORATORIO_MODEL_API_KEY: missing',
      `Right for a provider that asks for none; otherwise set it in .env. ${restart}`,
    );
  return context.value('ORATORIO_MODEL') === ''
    ? warn('ORATORIO_MODEL: missing', `Name the model in .env. ${restart}`)
    : ok('model');
}

/** Variables of Compose itself: they change the files or the stack of a command by hand. */
const ofCompose = ['COMPOSE_FILE', 'COMPOSE_PROFILES', 'COMPOSE_ENV_FILES'];

/** Finds variables of the shell that Compose prefers to `.env` silently. Our own commands run without them. */
export function overrides({ env, shell }: DoctorContext): Finding {
  // The default holds for a variable that is not in the file.
  const presets = allVariables().map(([name, each]) => [name, each.default ?? ''] as const);
  const values = new Map([...presets, ...(env?.values ?? [])]);
  const found = [
    ...overridesOf(shell, values),
    ...ofCompose.filter((name) => shell[name] !== undefined && !values.has(name)),
  ];
  if (found.length === 0) return ok('No variable of the shell stands in for one of .env.');
  return warn(
    `Variables of this shell stand in for .env when Compose is called by hand: ${found.join(', ')}.`,
    `unset ${found.join(' ')}`,
  );
}
