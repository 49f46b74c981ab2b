import { DeployError } from '../../errors.ts';
import { appKeyIn } from '../../github/index.ts';
import { stackFiles } from '../../layout.ts';
import { askBackend, BackendStatus, SettingsView } from '../backend.ts';
import type { DoctorContext } from '../context.ts';
import { fail, ok, warn, worst } from '../finding.ts';
import { limits } from '../limits.ts';
import type { Finding } from '../types.ts';

/** Checks that the file can be read, and has the settings that a stack needs. */
export function config(context: DoctorContext): Finding {
  const { appId, repositories, privateKeyPath } = context.config();
  return worst(
    [
      appId === null ? fail('GitHub.AppId is not set', `Set it in ${stackFiles.config}.`) : ok('app'),
      privateKeyPath === '' ? fail('GitHub.PrivateKeyPath is not set', `Set it in ${stackFiles.config}.`) : ok('key'),
      repositories.length === 0
        ? warn('There are no repositories', 'oratorio server add-repo github:owner/name')
        : ok('repositories'),
    ],
    `${repositories.length} ${repositories.length === 1 ? 'repository' : 'repositories'}; written back: ${yesNo(context.config().writesEnabled)}.`,
  );
}

const yesNo = (value: boolean): string => (value ? 'yes' : 'no');

/** Checks the settings with the backend itself, which knows all of them. */
export async function settings(context: DoctorContext, signal: AbortSignal): Promise<Finding> {
  const { writable, problem, warnings, restartNeededFor } = await askBackend(
    context,
    '/api/v1/settings/diagnostics',
    SettingsView,
    signal,
  );
  const shown = warnings.slice(0, limits.shownItems);
  return worst(
    [
      problem === null
        ? ok('settings')
        : fail(`The settings in use differ from the file: ${problem}`, `Correct ${stackFiles.config}.`),
      // A client behind a tunnel looks like this host (specification §4.4, rule 9).
      writable
        ? fail(
            'Settings can be changed over the API',
            'Oratorio__Settings__Writable must be false: oratorio server restart.',
          )
        : ok('writable'),
      restartNeededFor.length === 0
        ? ok('restart')
        : warn(`${restartNeededFor.join(', ')} changed since the start`, 'oratorio server restart'),
      ...shown.map((each) => warn(each, `See ${stackFiles.config}.`)),
    ],
    'The backend accepts them, and no remote client can change them.',
  );
}

/** The backend can ask GitHub, and has not given up any work. */
export async function work(context: DoctorContext, signal: AbortSignal): Promise<Finding> {
  const { source, deadJobs, version } = await askBackend(context, '/api/v1/status', BackendStatus, signal);
  const logs = 'oratorio server logs --service backend says more.';
  return worst(
    [
      source === undefined || source.state === 'ready'
        ? ok('source')
        : fail(`It cannot ask GitHub: ${source.message ?? source.code ?? source.state}`, logs),
      deadJobs === 0
        ? ok('jobs')
        : warn(`It gave up ${deadJobs} pieces of work`, `They are on its page under Sources. ${logs}`),
    ],
    `Version ${version}; it can ask GitHub and has given up nothing.`,
  );
}

/** The App's key is one, and only its owner can read it. Whether it is that of the App is asked of GitHub. */
export function key(context: DoctorContext): Finding {
  try {
    const path = context.keyFile();
    appKeyIn(path);
    return ok('It is an RSA key in PEM form.');
  } catch (error) {
    if (!(error instanceof DeployError)) throw error;
    return fail(error.message, error.hint);
  }
}
