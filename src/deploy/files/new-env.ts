import { envLine } from './env-file.ts';
import { allVariables, overlayVariables, type Variable, type VariableName } from './variables.ts';

const aboutStack = `Settings of this review stack that the composition reads, secrets among them: for its owner only.
Changed values hold after: oratorio server restart`;

const aboutExample = `Example of .env for a manual setup: copy it to .env, make it readable for its owner only (chmod 600 .env), and fill in the empty values.
Secrets are of letters and digits, e.g. of: openssl rand -hex 32`;

/** A new `.env`: every variable with its purpose. @throws DeployError as `changeEnv` */
export function newEnv(values: Readonly<Partial<Record<VariableName, string>>>): string {
  return document(aboutStack, values);
}

/** `.env.example` of a manual setup. */
export const envExample = (): string => document(aboutExample, {});

function document(about: string, values: Readonly<Partial<Record<string, string>>>): string {
  const lines = allVariables().map(
    ([name, variable]) =>
      `# ${variable.purpose}${remark(name, variable)}\n${envLine(name, values[name] ?? variable.default ?? '')}\n`,
  );
  return [about.replace(/^/gm, '# '), '', ...lines].join('\n');
}

function remark(name: string, variable: Variable): string {
  if (variable.default !== null) return '';
  return Object.hasOwn(overlayVariables, name) ? '' : ' Must be set.';
}

/** Table of the variables for the documentation, in Markdown. */
export function variablesTable(): string {
  const rows = allVariables().map(([name, { purpose, isSecret, default: value, given }]) => {
    const services = Object.keys(given).join(', ');
    return `| \`${name}\` | ${value ? `\`${value}\`` : value === null ? 'must be set' : ''} | ${isSecret ? 'yes' : ''} | ${services} | ${purpose} |`;
  });
  return ['| Variable | Default | Secret | Seen by | |', '| --- | --- | --- | --- | --- |', ...rows, ''].join('\n');
}
