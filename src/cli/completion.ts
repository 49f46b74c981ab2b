/** Completion scripts, made from the command table alone: completing a word starts no process. */
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

/** A command, or words that commands begin with: `server` and `server webhook` of `server webhook enable`. */
interface Node {
  readonly name: string;
  readonly command: CommandSpec | undefined;
  /** Words that may follow. */
  readonly next: readonly string[];
}

/** Every beginning of a command's name, the empty one first. */
function nodesOf(commands: readonly CommandSpec[]): readonly Node[] {
  const beginnings = commands.flatMap(({ name }) => {
    const words = name.split(' ');
    return words.map((_, index) => words.slice(0, index + 1).join(' '));
  });
  return ['', ...new Set(beginnings)].map((name) => ({
    name,
    command: commands.find((command) => command.name === name),
    next: [
      ...new Set(
        commands
          .filter((command) => command.name !== name && (name === '' || command.name.startsWith(`${name} `)))
          .map((command) => command.name.slice(name === '' ? 0 : name.length + 1).split(' ')[0] ?? ''),
      ),
    ],
  }));
}

const flags = ({ options }: CommandSpec): string[] => [
  ...options.flatMap(({ name, alias }) => [`--${name}`, ...(alias ? [`-${alias}`] : [])]),
  '--help',
];
const summary = ({ describe }: CommandSpec): string => describe[0] ?? '';
const takesFile = ({ value }: OptionSpec): boolean => value === 'file';
/** An option that takes a directory. */
const takesDirectory = ({ value }: OptionSpec): boolean => value === 'dir';

/** Words that may follow `--option` in bash, as the body of a case. */
function bashValues({ options }: CommandSpec): string {
  const valued = options.filter(({ value }) => value !== undefined);
  const cases = valued.map((option) => {
    const reply = option.choices
      ? `COMPREPLY=($(compgen -W '${option.choices.join(' ')}' -- "$current"))`
      : takesDirectory(option)
        ? 'COMPREPLY=($(compgen -d -- "$current"))'
        : takesFile(option)
          ? 'COMPREPLY=($(compgen -f -- "$current"))'
          : 'COMPREPLY=()';
    return `        --${option.name}) ${reply}; return ;;`;
  });
  return cases.length === 0 ? '' : `      case "$previous" in\n${cases.join('\n')}\n      esac\n`;
}

function bashNode({ name, command, next }: Node): string {
  const argument = command?.argument;
  const words = [...next, ...(argument?.choices ?? []), ...(command?.second?.choices ?? [])];
  const directories = argument?.completes === 'directories' ? '\n        COMPREPLY+=($(compgen -d -- "$current"))' : '';
  return `    '${name}')
${command ? bashValues(command) : ''}      if [[ "$current" == -* ]]; then
        COMPREPLY=($(compgen -W '${command ? flags(command).join(' ') : '--help'}' -- "$current"))
      else
        COMPREPLY=($(compgen -W '${words.join(' ')}' -- "$current"))${directories}
      fi ;;`;
}

/** `'hub stop'|'server webhook'`: names that continue a first word. */
const longer = (nodes: readonly Node[]): string =>
  nodes
    .filter(({ name }) => name.includes(' '))
    .map(({ name }) => `'${name}'`)
    .join('|');

function bash(commands: readonly CommandSpec[]): string {
  const nodes = nodesOf(commands);
  return `# bash completion of oratorio
_oratorio() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" command="\${COMP_WORDS[1]}" word
  COMPREPLY=()
  if (( COMP_CWORD == 1 )); then
    COMPREPLY=($(compgen -W '${nodes[0]?.next.join(' ') ?? ''} --help --version' -- "$current"))
    return
  fi
  for word in "\${COMP_WORDS[@]:2:COMP_CWORD-2}"; do
    case "$command $word" in
      ${longer(nodes)}) command="$command $word" ;;
      *) break ;;
    esac
  done
  case "$command" in
${nodes
  .filter(({ name }) => name !== '')
  .map(bashNode)
  .join('\n')}
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
      : `:${option.value}:${option.choices ? `(${option.choices.join(' ')})` : takesDirectory(option) ? '_files -/' : takesFile(option) ? '_files' : ' '}`;
  const names = [`--${option.name}`, ...(option.alias ? [`-${option.alias}`] : [])];
  return names.map((name) => `'${name}${text}${value}'`);
}

function zshNode({ name, command, next }: Node): string {
  const argument = command?.argument;
  const words = [...next, ...(argument?.choices ?? [])];
  const rest =
    argument?.completes === 'directories'
      ? [`'1:${argument.name}:_files -/'`]
      : words.length > 0
        ? [`'1:what:(${words.join(' ')})'`]
        : [];
  const second = command?.second?.choices ? [`'2:${command.second.value}:(${command.second.choices.join(' ')})'`] : [];
  const all = [...(command?.options.flatMap(zshOption) ?? []), `'--help[Explain this command]'`, ...rest, ...second];
  return `    '${name}') _arguments ${all.join(' ')} ;;`;
}

function zsh(commands: readonly CommandSpec[]): string {
  const nodes = nodesOf(commands);
  const described = (nodes[0]?.next ?? []).map((word) => {
    const command = commands.find(({ name }) => name === word);
    return `    '${word}:${zshQuoted(command ? summary(command) : word)}'`;
  });
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
  while (( CURRENT > taken + 2 )); do
    case "$name $words[taken + 2]" in
      ${longer(nodes)}) name="$name $words[taken + 2]"; (( taken += 1 )) ;;
      *) break ;;
    esac
  done
  shift taken words
  (( CURRENT -= taken ))
  case "$name" in
${nodes
  .filter(({ name }) => name !== '')
  .map(zshNode)
  .join('\n')}
  esac
}
if [ "$funcstack[1]" = "_oratorio" ]; then _oratorio "$@"; else compdef _oratorio oratorio; fi
`;
}

const fishQuoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

function fishCommand(command: CommandSpec): string[] {
  const base = `complete -c oratorio -f -n ${fishQuoted(fishSeen(command.name.split(' ')))}`;
  const options = command.options.map((option) => {
    const alias = option.alias ? ` -s ${option.alias}` : '';
    const value =
      option.value === undefined
        ? ''
        : option.choices
          ? ` -x -a ${fishQuoted(option.choices.join(' '))}`
          : takesDirectory(option)
            ? ` -x -a '(__fish_complete_directories)'`
            : takesFile(option)
              ? ' -r -F'
              : ' -x';
    return `${base} -l ${option.name}${alias}${value} -d ${fishQuoted(option.describe)}`;
  });
  const argument =
    command.argument?.completes === 'directories'
      ? [`${base} -a '(__fish_complete_directories)'`]
      : command.argument?.choices
        ? [`${base} -a ${fishQuoted(command.argument.choices.join(' '))}`]
        : [];
  const second = command.second?.choices ? [`${base} -a ${fishQuoted(command.second.choices.join(' '))}`] : [];
  return [...options, ...argument, ...second];
}

const fishSeen = (words: readonly string[]): string =>
  words.map((word) => `__fish_seen_subcommand_from ${word}`).join('; and ');

function fish(commands: readonly CommandSpec[]): string {
  const lines = nodesOf(commands).flatMap(({ name, command, next }) => {
    const condition = name === '' ? '__fish_use_subcommand' : fishSeen(name.split(' '));
    const words = next.map((word) => {
      const full = name === '' ? word : `${name} ${word}`;
      const found = commands.find((each) => each.name === full);
      return `complete -c oratorio -f -n ${fishQuoted(condition)} -a ${word} -d ${fishQuoted(found ? summary(found) : word)}`;
    });
    return [...words, ...(command ? fishCommand(command) : [])];
  });
  return `# fish completion of oratorio\n${lines.join('\n')}\n`;
}
