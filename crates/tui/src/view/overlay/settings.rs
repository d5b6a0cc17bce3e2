//! The settings.

use consort_model::limits::NAMED;
use consort_model::{Availability, ProfileSummary, Rule, RuleScope, ToolKind};
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::middle;
use crate::app::{App, Hit};
use crate::keys::{Action, TABLE};
use crate::overlay::Settings;
use crate::overlay::settings::Part;
use crate::text::{clean, width};
use crate::view::Canvas;

pub(super) fn draw(app: &mut App, canvas: &mut Canvas<'_>, area: Rect, settings: &mut Settings) {
    let theme = app.theme;
    let area = middle(area, 110, area.height.saturating_sub(2));
    canvas.clear(area);
    app.hits.add(area, Hit::Overlay);
    let inner = canvas.frame(area, "Settings", theme.border_focused);
    if inner.height < 5 {
        return;
    }
    let mut x = inner.x;
    for (at, part) in Part::ALL.into_iter().enumerate() {
        let style = if part == settings.part { theme.accent } else { theme.dim };
        let end = canvas.text(x, inner.y, inner.right().saturating_sub(x), part.title(), style);
        app.hits.add(Rect::new(x, inner.y, end.saturating_sub(x), 1), Hit::Tab(at));
        x = end + 3;
    }
    let rows = rows(app, settings, inner.width.into());
    settings.count = rows.len();
    settings.step(0);
    let list = Rect { y: inner.y + 2, height: inner.height.saturating_sub(4), ..inner };
    // Rows may take more than one line; the chosen one stays in sight.
    settings.top = settings.top.min(settings.row);
    while settings.top < settings.row
        && rows.iter().take(settings.row + 1).skip(settings.top).map(Vec::len).sum::<usize>()
            > list.height.into()
    {
        settings.top += 1;
    }
    let mut y = list.y;
    for (at, lines) in rows.iter().enumerate().skip(settings.top) {
        for line in lines {
            if y >= list.bottom() {
                break;
            }
            canvas.line(list.x, y, list.width, line);
            let place = Rect::new(list.x, y, list.width, 1);
            app.hits.add(place, Hit::Setting(at));
            if at == settings.row {
                canvas.style(place, theme.selection);
            }
            y += 1;
        }
    }
    if rows.is_empty() {
        let words = match settings.part {
            Part::Rules => "No rules: answering an approval with `session` or `always` makes one.",
            _ => "",
        };
        canvas.text(list.x, list.y, list.width, words, theme.dim);
    }
    draw_hints(app, canvas, Rect { y: inner.bottom() - 1, height: 1, ..inner }, settings.part);
}

fn draw_hints(app: &mut App, canvas: &mut Canvas<'_>, line: Rect, part: Part) {
    let theme = app.theme;
    let hints: &[(Action, &str)] = match part {
        Part::Profiles => &[
            (Action::SettingEdit, "edit"),
            (Action::SettingAdd, "add"),
            (Action::SettingDuplicate, "duplicate"),
            (Action::SettingRemove, "remove"),
            (Action::SettingDefault, "make default"),
            (Action::SettingCheck, "look again"),
        ],
        Part::Rules => &[(Action::SettingAdd, "add"), (Action::SettingRemove, "remove")],
        Part::Limits => &[(Action::SettingEdit, "change")],
        Part::Keys => &[
            (Action::SettingEdit, "change"),
            (Action::SettingAdd, "one more"),
            (Action::SettingRemove, "as it was"),
        ],
        Part::Screen => &[(Action::SettingEdit, "change")],
    };
    let mut x = line.x;
    for (action, words) in
        hints.iter().chain([(Action::TabNext, "next part"), (Action::SettingLeave, "close")].iter())
    {
        let from = x;
        let end = canvas.text(x, line.y, line.right().saturating_sub(x), app.keys.label(*action), theme.key);
        let end = canvas.text(end + 1, line.y, line.right().saturating_sub(end + 1), words, theme.dim);
        app.hits.add(Rect::new(from, line.y, end.saturating_sub(from), 1), Hit::Button(*action));
        x = end + 2;
    }
}

fn rows(app: &App, settings: &Settings, columns: usize) -> Vec<Vec<Line<'static>>> {
    let theme = &app.theme;
    let pair = |label: &str, value: String, about: &str| {
        vec![Line::from(vec![
            Span::styled(width::fit(label, 24).into_owned(), theme.text),
            Span::styled(width::fit(&value, if columns > 90 { 22 } else { 10 }).into_owned(), theme.accent),
            Span::styled(about.to_owned(), theme.dim),
        ])]
    };
    match settings.part {
        Part::Profiles => app.state.profiles.iter().map(|it| profile(app, settings, it, columns)).collect(),
        Part::Rules => app.state.rules.values().map(|it| vec![rule(app, it)]).collect(),
        Part::Limits => NAMED
            .iter()
            .map(|(name, about)| {
                let value = app.state.limits.get(name).unwrap_or_default();
                pair(name, value.to_string(), about)
            })
            .collect(),
        Part::Screen => vec![
            pair(
                "theme",
                app.memory.theme.clone().unwrap_or_else(|| format!("as the terminal ({})", app.theme.name)),
                "",
            ),
            pair(
                "notifications",
                app.memory.notices.words().to_owned(),
                "when an agent needs you or is done, and you look elsewhere",
            ),
            pair("list of agents", if app.memory.sidebar_hidden { "hidden" } else { "shown" }.to_owned(), ""),
            pair(
                "pictures",
                if app.memory.pictures_hidden { "hidden" } else { "shown" }.to_owned(),
                "images in a conversation, where the terminal has colours",
            ),
        ],
        Part::Keys => TABLE
            .iter()
            .map(|binding| {
                vec![Line::from(vec![
                    Span::styled(width::fit(binding.name, 22).into_owned(), theme.text),
                    Span::styled(width::fit(&app.keys.all_labels(binding), 24).into_owned(), theme.key),
                    Span::styled(binding.help, theme.dim),
                ])]
            })
            .collect(),
    }
}

fn profile(app: &App, settings: &Settings, profile: &ProfileSummary, columns: usize) -> Vec<Line<'static>> {
    let theme = &app.theme;
    let check = settings.check(&profile.id);
    let (mark, style, state) = match &profile.availability {
        Availability::Available { path } => {
            let version = check
                .and_then(|check| check.version.as_deref())
                .map(|it| format!(" {}", clean::one_line(it)));
            ("✓", theme.good, format!("{}{}", clean::one_line(path), version.unwrap_or_default()))
        }
        Availability::Unavailable { reason } => ("✗", theme.bad, clean::one_line(reason).into_owned()),
        Availability::Unknown => ("·", theme.dim, "not looked at yet".to_owned()),
    };
    let in_use = app.state.agents.values().filter(|it| it.profile == profile.id && !it.is_closed()).count();
    let mut about = vec![profile.driver.word().to_owned()];
    about.extend(profile.default_model.iter().map(|model| clean::one_line(model).into_owned()));
    about.push(profile.default_permissions.word().to_owned());
    if profile.is_default {
        about.push("default profile".to_owned());
    }
    if in_use > 0 {
        about.push(format!("{in_use} open"));
    }
    let first = Line::from(vec![
        Span::styled(format!("{mark} "), style),
        Span::styled(width::fit(&clean::one_line(&profile.name), 20).into_owned(), theme.title),
        Span::styled(width::cut(&about.join(" · "), columns.saturating_sub(24)).into_owned(), theme.dim),
    ]);
    let second = format!("    {}", width::cut(&state, columns.saturating_sub(4)));
    vec![first, Line::styled(second, theme.dim)]
}

fn rule(app: &App, rule: &Rule) -> Line<'static> {
    let theme = &app.theme;
    let (word, style) = if rule.effect.is_allow() { ("allow", theme.good) } else { ("deny ", theme.bad) };
    let scope = match &rule.scope {
        RuleScope::Agent { agent } => app.name_of(*agent),
        RuleScope::Profile { profile } => format!("profile {profile}"),
        RuleScope::Project { folder } => format!("in {}", clean::one_line(folder)),
        RuleScope::All => "everyone".to_owned(),
    };
    let tool = rule.tool.map_or("anything", ToolKind::verb);
    Line::from(vec![
        Span::styled(format!("{word} "), style),
        Span::styled(width::fit(&scope, 26).into_owned(), theme.dim),
        Span::styled(width::fit(tool, 9).into_owned(), theme.dim),
        Span::styled(clean::exact(&rule.subject.to_string()).replace('\n', " "), theme.text),
    ])
}
