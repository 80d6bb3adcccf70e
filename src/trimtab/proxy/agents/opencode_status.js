// Shows trimtab's line when a turn has ended, and has a summary keep the handles of originals.
// TRIMTAB_STATUS: the command, a JSON list of words; without it "trimtab status".
import { execFile } from "node:child_process"

const words = JSON.parse(process.env.TRIMTAB_STATUS ?? '["trimtab", "status"]')

function status(session, ...more) {
  return new Promise((resolve) => {
    const given = [...words.slice(1), "--session", session, ...more]
    const child = execFile(words[0], given, { timeout: 3000 }, (error, text) =>
      resolve(error ? "" : text.trim()),
    )
    child.stdin.end()
  })
}

export const trimtab = async ({ client }) => ({
  event: async ({ event }) => {
    if (event.type !== "session.idle") return
    const message = await status(event.properties.sessionID)
    if (message) await client.tui.showToast({ body: { title: "trimtab", message, variant: "info" } })
  },
  "experimental.session.compacting": async (input, output) => {
    const keep = await status(input.sessionID, '{"hook_event_name": "PreCompact"}')
    if (keep) output.context.push(keep)
  },
})
