/** Completion scripts, made from the command table alone: no process is started while somebody types. */
import type { CommandSpec, OptionSpec } from './command.ts';

export const shells = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof shells)[number];
export const isShell = (name: string): name is Shell => (shells as readonly string[]).includes(name);

export function completionScript(shell: Shell, commands: readonly CommandSpec[]): string {
  switch (shell) {
    case 'bash':
      return bash(commands);
    case 'zsh':
      return zsh(commands);
    case 'fish':
      return fish(commands);
  }
}

const firstWords = (commands: readonly CommandSpec[]): string[] => [
  ...new Set(commands.map(({ name }) => name.split(' ')[0] ?? '')),
];
const secondWords = (commands: readonly CommandSpec[], first: string): string[] =>
  commands.filter(({ name }) => name.startsWith(`${first} `)).map(({ name }) => name.slice(first.length + 1));
const flags = ({ options }: CommandSpec): string[] => [
  ...options.flatMap(({ name, alias }) => [`--${name}`, ...(alias ? [`-${alias}`] : [])]),
  '--help',
];
const summary = ({ describe }: CommandSpec): string => describe[0] ?? '';
/** An option that takes a directory. */
const takesDirectory = ({ value }: OptionSpec): boolean => value === 'dir';

/** What may follow `--option` in bash, as the body of a case. */
function bashValues({ options }: CommandSpec): string {
  const valued = options.filter(({ value }) => value !== undefined);
  const cases = valued.map((option) => {
    const reply = option.choices
      ? `COMPREPLY=($(compgen -W '${option.choices.join(' ')}' -- "$current"))`
      : takesDirectory(option)
        ? 'COMPREPLY=($(compgen -d -- "$current"))'
        : 'COMPREPLY=()';
    return `        --${option.name}) ${reply}; return ;;`;
  });
  return cases.length === 0 ? '' : `      case "$previous" in\n${cases.join('\n')}\n      esac\n`;
}

function bashCommand(command: CommandSpec, commands: readonly CommandSpec[]): string {
  const { argument, name } = command;
  const words = [...(name.includes(' ') ? [] : secondWords(commands, name)), ...(argument?.choices ?? [])];
  const directories = argument?.completes === 'directories' ? '\n        COMPREPLY+=($(compgen -d -- "$current"))' : '';
  return `    '${name}')
${bashValues(command)}      if [[ "$current" == -* ]]; then
        COMPREPLY=($(compgen -W '${flags(command).join(' ')}' -- "$current"))
      else
        COMPREPLY=($(compgen -W '${words.join(' ')}' -- "$current"))${directories}
      fi ;;`;
}

function bash(commands: readonly CommandSpec[]): string {
  const doubles = commands.filter(({ name }) => name.includes(' ')).map(({ name }) => `'${name}'`);
  return `# bash completion of oratorio
_oratorio() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" command="\${COMP_WORDS[1]}"
  COMPREPLY=()
  if (( COMP_CWORD == 1 )); then
    COMPREPLY=($(compgen -W '${firstWords(commands).join(' ')} --help --version' -- "$current"))
    return
  fi
  if (( COMP_CWORD > 2 )); then
    case "$command \${COMP_WORDS[2]}" in
      ${doubles.join('|')}) command="$command \${COMP_WORDS[2]}" ;;
    esac
  fi
  case "$command" in
${commands.map((command) => bashCommand(command, commands)).join('\n')}
  esac
}
complete -o filenames -F _oratorio oratorio
`;
}

const zshQuoted = (text: string): string => text.replaceAll("'", "'\\''").replaceAll(/[[\]:]/g, (sign) => `\\${sign}`);

function zshOption(option: OptionSpec): string[] {
  const text = `[${zshQuoted(option.describe)}]`;
  const value =
    option.value === undefined
      ? ''
      : `:${option.value}:${option.choices ? `(${option.choices.join(' ')})` : takesDirectory(option) ? '_files -/' : ' '}`;
  const names = [`--${option.name}`, ...(option.alias ? [`-${option.alias}`] : [])];
  return names.map((name) => `'${name}${text}${value}'`);
}

function zshCommand(command: CommandSpec, commands: readonly CommandSpec[]): string {
  const { argument, name } = command;
  const words = [...(name.includes(' ') ? [] : secondWords(commands, name)), ...(argument?.choices ?? [])];
  const rest =
    argument?.completes === 'directories'
      ? [`'1:${argument.name}:_files -/'`]
      : words.length > 0
        ? [`'1:what:(${words.join(' ')})'`]
        : [];
  const all = [...command.options.flatMap(zshOption), `'--help[Explain this command]'`, ...rest];
  return `    '${name}') _arguments ${all.join(' ')} ;;`;
}

function zsh(commands: readonly CommandSpec[]): string {
  const described = firstWords(commands).map((word) => {
    const command = commands.find(({ name }) => name === word);
    return `    '${word}:${zshQuoted(command ? summary(command) : word)}'`;
  });
  const doubles = commands.filter(({ name }) => name.includes(' ')).map(({ name }) => `'${name}'`);
  return `#compdef oratorio
# zsh completion of oratorio
_oratorio() {
  local -a names
  names=(
${described.join('\n')}
  )
  if (( CURRENT == 2 )); then
    _describe 'command' names
    return
  fi
  local name="$words[2]"
  integer taken=1
  if (( CURRENT > 3 )); then
    case "$name $words[3]" in
      ${doubles.join('|')}) name="$name $words[3]"; taken=2 ;;
    esac
  fi
  shift taken words
  (( CURRENT -= taken ))
  case "$name" in
${commands.map((command) => zshCommand(command, commands)).join('\n')}
  esac
}
if [ "$funcstack[1]" = "_oratorio" ]; then _oratorio "$@"; else compdef _oratorio oratorio; fi
`;
}

const fishQuoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

function fishCommand(command: CommandSpec): string[] {
  const [first = '', second] = command.name.split(' ');
  const seen = `__fish_seen_subcommand_from ${first}`;
  const condition = second === undefined ? seen : `${seen}; and __fish_seen_subcommand_from ${second}`;
  const base = `complete -c oratorio -f -n ${fishQuoted(condition)}`;
  const options = command.options.map((option) => {
    const alias = option.alias ? ` -s ${option.alias}` : '';
    const value =
      option.value === undefined
        ? ''
        : option.choices
          ? ` -x -a ${fishQuoted(option.choices.join(' '))}`
          : takesDirectory(option)
            ? ` -x -a '(__fish_complete_directories)'`
            : ' -x';
    return `${base} -l ${option.name}${alias}${value} -d ${fishQuoted(option.describe)}`;
  });
  const argument =
    command.argument?.completes === 'directories'
      ? [`${base} -a '(__fish_complete_directories)'`]
      : command.argument?.choices
        ? [`${base} -a ${fishQuoted(command.argument.choices.join(' '))}`]
        : [];
  return [...options, ...argument];
}

function fish(commands: readonly CommandSpec[]): string {
  const lines = commands.flatMap((command) => {
    const [first = '', second] = command.name.split(' ');
    const condition = second === undefined ? '__fish_use_subcommand' : `__fish_seen_subcommand_from ${first}`;
    return [
      `complete -c oratorio -f -n ${fishQuoted(condition)} -a ${second ?? first} -d ${fishQuoted(summary(command))}`,
      ...fishCommand(command),
    ];
  });
  return `# fish completion of oratorio\n${lines.join('\n')}\n`;
}
