// Plays scripts with one client, and prints what it saw of each as JSON.
//
//     node play.mjs CLIENT ROOT PLAYS
//
// CLIENT is a module beside this one, with a word for it after a colon. It has `turns(root, model,
// stream, word)`, which yields each turn as the client shows it and answers its calls after that,
// and `isOwn(error)`. PLAYS is a JSON list of {model, stream, limit}. What a client throws is what
// it shows, too.

const [client, root, plays] = process.argv.slice(2);
const [program, word] = client.split(":");
const { isOwn, turns } = await import(`./${program}`);

async function play({ model, stream, limit }) {
  const seen = { model, stream, turns: [], failure: null };
  try {
    for await (const turn of turns(root, model, stream, word)) {
      seen.turns.push(turn);
      if (seen.turns.length === limit) break;
    }
  } catch (error) {
    seen.failure = shown(error);
  }
  return seen;
}

function shown(error) {
  const status = error.status ?? error.statusCode ?? error.lastError?.statusCode ?? null;
  return {
    type: named(error),
    own: isOwn(error),
    status: Number.isInteger(status) ? status : null,
    message: error.message,
  };
}

// The Vercel AI SDK wraps the last error of its tries: both names tell.
function named(error) {
  const name = error.name === "Error" || !error.name ? error.constructor.name : error.name;
  return error.lastError ? `${name} (${named(error.lastError)})` : name;
}

process.stdout.write(JSON.stringify(await Promise.all(JSON.parse(plays).map(play))));
