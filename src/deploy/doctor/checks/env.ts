import { overridesOf } from '../../engine/index.ts';
import { allVariables, checkSecretText, type Variable } from '../../files/index.ts';
import type { DoctorContext } from '../context.ts';
import { fail, ok, warn, worst } from '../finding.ts';
import type { Finding } from '../types.ts';

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
